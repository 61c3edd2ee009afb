"""Runs: built from configs, trained, saved, resumed, evaluated and shown."""

from rl4sys.config import packaged_configs
from rl4sys.experiments.callbacks import CALLBACKS, Callback, CallbackConfig, register_callback
from rl4sys.experiments.config import ExperimentConfig, load_entry_points, load_experiment, load_with_origins
from rl4sys.experiments.debugging import ReplayedUpdate, replay_update
from rl4sys.experiments.episode_recorder import EpisodeRecorder
from rl4sys.experiments.learning_curves import NothingToPlot, plot
from rl4sys.experiments.loggers.registry import LOGGERS, LoggedRun, LoggerConfig, register_logger
from rl4sys.experiments.loggers.section import LoggerUnavailable
from rl4sys.experiments.loggers.terminal import Screen, Terminal
from rl4sys.experiments.metrics import Logger, MetricRecord
from rl4sys.experiments.preflight import check_combination
from rl4sys.experiments.result import Result
from rl4sys.experiments.run import Run
from rl4sys.experiments.run_directory import NotSaved, RunBusy, RunDamaged, RunDirectory, find_run
from rl4sys.experiments.run_evaluation import RunEvaluation, evaluate_run
from rl4sys.experiments.simulation.rendering import CannotRender
from rl4sys.experiments.simulation.simulation import (
    PolicyMisfit,
    SimulatedEpisode,
    Simulation,
    SimulationSetup,
    plot_episodes,
)
from rl4sys.experiments.simulation.video_file import VideoUnavailable
from rl4sys.learning import DeviceUnavailable
from rl4sys.run_finder import RunNotFound

Record = MetricRecord
"""The name of `MetricRecord` before version 0.2: loggers of plug-ins import it."""

__all__ = [
    "CALLBACKS",
    "LOGGERS",
    "Callback",
    "CallbackConfig",
    "CannotRender",
    "DeviceUnavailable",
    "EpisodeRecorder",
    "ExperimentConfig",
    "LoggedRun",
    "Logger",
    "LoggerConfig",
    "LoggerUnavailable",
    "MetricRecord",
    "NotSaved",
    "NothingToPlot",
    "PolicyMisfit",
    "Record",
    "ReplayedUpdate",
    "Result",
    "Run",
    "RunBusy",
    "RunDamaged",
    "RunDirectory",
    "RunEvaluation",
    "RunNotFound",
    "Screen",
    "SimulatedEpisode",
    "Simulation",
    "SimulationSetup",
    "Terminal",
    "VideoUnavailable",
    "check_combination",
    "evaluate_run",
    "find_run",
    "load_entry_points",
    "load_experiment",
    "load_with_origins",
    "packaged_configs",
    "plot",
    "plot_episodes",
    "register_callback",
    "register_logger",
    "replay_update",
]

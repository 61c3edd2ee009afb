"""Runs: built from configs, saved, resumed, shown."""

from rl4sys.experiments.api import train
from rl4sys.experiments.checkpoint import Checkpoints, NoCheckpoint
from rl4sys.experiments.config import ExperimentConfig, load_experiment, packaged_configs
from rl4sys.experiments.devices import DeviceUnavailable
from rl4sys.experiments.evaluating import evaluate_run
from rl4sys.experiments.plotting import NothingToPlot, plot
from rl4sys.experiments.replay_chunks import CheckpointDamaged
from rl4sys.experiments.run import Result, Run
from rl4sys.experiments.run_directory import RunDirectory, RunNotFound
from rl4sys.experiments.terminal import Terminal

__all__ = [
    "CheckpointDamaged",
    "Checkpoints",
    "DeviceUnavailable",
    "ExperimentConfig",
    "NoCheckpoint",
    "NothingToPlot",
    "Result",
    "Run",
    "RunDirectory",
    "RunNotFound",
    "Terminal",
    "evaluate_run",
    "load_experiment",
    "packaged_configs",
    "plot",
    "train",
]

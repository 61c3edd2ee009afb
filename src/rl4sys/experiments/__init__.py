"""Runs: built from configs, saved, resumed, shown."""

from rl4sys.config import packaged_configs
from rl4sys.experiments.api import train
from rl4sys.experiments.config import ExperimentConfig, load_experiment
from rl4sys.experiments.evaluating import Evaluated, evaluate_run
from rl4sys.experiments.finding import find_run
from rl4sys.experiments.loggers import LoggerUnavailable
from rl4sys.experiments.metrics import Logger, Record
from rl4sys.experiments.plotting import NothingToPlot, plot
from rl4sys.experiments.preflight import check_combination
from rl4sys.experiments.result import Result
from rl4sys.experiments.run import NotSaved, Run
from rl4sys.experiments.run_directory import RunBusy, RunDamaged, RunDirectory, RunNotFound
from rl4sys.experiments.terminal import Screen, Terminal
from rl4sys.learning import DeviceUnavailable

__all__ = [
    "DeviceUnavailable",
    "Evaluated",
    "ExperimentConfig",
    "Logger",
    "LoggerUnavailable",
    "NotSaved",
    "NothingToPlot",
    "Record",
    "Result",
    "Run",
    "RunBusy",
    "RunDamaged",
    "RunDirectory",
    "RunNotFound",
    "Screen",
    "Terminal",
    "check_combination",
    "evaluate_run",
    "find_run",
    "load_experiment",
    "packaged_configs",
    "plot",
    "train",
]

"""Reinforcement learning inside live systems, and a laboratory for its algorithms."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rl4sys.version import __version__ as __version__

if TYPE_CHECKING:
    from rl4sys.algorithms import register_algorithm as register_algorithm
    from rl4sys.client import RL4SysAction as RL4SysAction
    from rl4sys.client import RL4SysAgent as RL4SysAgent
    from rl4sys.client import RL4SysTrajectory as RL4SysTrajectory
    from rl4sys.client import connect as connect
    from rl4sys.client import connect_async as connect_async
    from rl4sys.client import run_environment as run_environment
    from rl4sys.environments import register_environment as register_environment
    from rl4sys.experience import Ending as Ending
    from rl4sys.experiments import Callback as Callback
    from rl4sys.experiments import CallbackConfig as CallbackConfig
    from rl4sys.experiments import register_callback as register_callback
    from rl4sys.experiments import register_logger as register_logger
    from rl4sys.laboratory.stored_results import load as load
    from rl4sys.laboratory.stored_results import runs as runs
    from rl4sys.laboratory.trainable_on_ray import RunTrainable as RunTrainable
    from rl4sys.laboratory.training import resume as resume
    from rl4sys.laboratory.training import train as train
    from rl4sys.networks import register_network as register_network
    from rl4sys.replay import register_buffer as register_buffer

# Programs for the original RL4Sys import `rl4sys.common`, `rl4sys.utils` and others; they all live in one place.
__path__.append(str(Path(__file__).with_name("original")))

_HOMES = {
    "connect": "rl4sys.client",
    "connect_async": "rl4sys.client",
    "run_environment": "rl4sys.client",
    "RL4SysAgent": "rl4sys.client",
    "RL4SysTrajectory": "rl4sys.client",
    "RL4SysAction": "rl4sys.client",
    "Ending": "rl4sys.experience",
    "train": "rl4sys.laboratory.training",
    "resume": "rl4sys.laboratory.training",
    "load": "rl4sys.laboratory.stored_results",
    "runs": "rl4sys.laboratory.stored_results",
    "RunTrainable": "rl4sys.laboratory.trainable_on_ray",
    "register_algorithm": "rl4sys.algorithms",
    "register_environment": "rl4sys.environments",
    "register_network": "rl4sys.networks",
    "register_buffer": "rl4sys.replay",
    "register_logger": "rl4sys.experiments",
    "register_callback": "rl4sys.experiments",
    "Callback": "rl4sys.experiments",
    "CallbackConfig": "rl4sys.experiments",
}
"""Names that need more than the client core: imported when they are first used, so that the core stays light."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'rl4sys' has no attribute '{name}'")
    try:
        return getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"rl4sys.{name} needs the package '{error.name}'. Install it with: pip install 'rl4sys[train]'"
        ) from error


def __dir__() -> list[str]:
    """Everything that can be asked for, for completion in a shell or notebook."""
    dunders = {name for name in globals() if name.startswith("__")}
    return sorted({*dunders, *_HOMES})

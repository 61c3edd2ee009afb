"""Algorithms by name."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol

from pydantic import Field

from rl4sys.algorithms.problem import Policies, Problem, Progress, Update
from rl4sys.config import Config, Registry
from rl4sys.experience import Array
from rl4sys.replay import OnceFresh, Ratio
from rl4sys.state import State


class Algorithm(Protocol):
    """Improves the weights of a policy from batches. It knows no environment, file, socket or clock."""

    policies: Policies

    def advance(self, progress: Progress) -> None:
        """Take note of how far the run has come, for schedules."""

    def update(self, batch: Any) -> Update:
        """Learn from one batch of the kind that the algorithm's buffer yields."""

    def standardize(self, name: str, mean: Array, scale: Array) -> None:
        """Use these statistics of one observation from now on."""

    def policy_weights(self) -> Array:
        """The flat weights of the acting policy."""

    def state(self) -> State:
        """Everything that the next update depends on."""

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""


class AlgorithmConfig(Config):
    """Hyperparameters of an algorithm, and how it wants to be fed."""

    buffers: ClassVar[tuple[str, ...]]
    """Names of the buffers it can learn from; the first is the default."""

    gamma: float = Field(0.99, ge=0, le=1)
    """How much a reward one step later is worth. Nearer to 1 looks further ahead."""

    @abstractmethod
    def build(self, problem: Problem) -> Algorithm:
        """The algorithm for one problem."""

    @abstractmethod
    def pace(self, buffer_size: int) -> OnceFresh | Ratio:
        """When its buffer has something to learn from."""

    @abstractmethod
    def steps_between_updates(self, buffer_size: int) -> int:
        """Environment steps, over all lanes, to collect before learning has its turn."""

    @abstractmethod
    def update_size(self) -> int:
        """Rows in one gradient step, to choose the number of threads by."""

    @property
    def window(self) -> int:
        """Consecutive steps that one drawn transition spans."""
        return 1


ALGORITHMS: Registry[AlgorithmConfig] = Registry("algorithm", AlgorithmConfig)
register_algorithm = ALGORITHMS.register


def with_usual_buffer(values: Any) -> Any:
    """The raw values of a config, whose buffer is the algorithm's usual one if it has no type.

    What is not as it should be is passed on as it is, for validation to complain about.
    """
    if not isinstance(values, dict):
        return values
    algorithm, buffer = values.get("algorithm"), values.get("buffer") or {}
    name = algorithm.get("name") if isinstance(algorithm, dict) else None
    if not isinstance(name, str) or name not in ALGORITHMS or not isinstance(buffer, dict) or "type" in buffer:
        return values
    return {**values, "buffer": {"type": ALGORITHMS.type(name).buffers[0], **buffer}}

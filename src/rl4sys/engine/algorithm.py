"""The protocol of algorithms, their configs, and the registry of their names."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol

import torch
from pydantic import Field, field_validator

from rl4sys.config import Config, ConfigError, Registry, parse
from rl4sys.engine.imitation import ImitationConfig
from rl4sys.engine.problem import Policies, Problem, Update
from rl4sys.engine.schedules import SCHEDULES, ScheduleConfig, as_schedule
from rl4sys.engine.tensor_streams import SequencePlan
from rl4sys.engine.train_state import TrainState
from rl4sys.experience import Array, ArraySpec
from rl4sys.networks import OPTIMIZERS, NetworksConfig, OptimizerConfig, as_optimizer
from rl4sys.policy import ActionSpec
from rl4sys.replay import OnceFresh, Ratio
from rl4sys.suggestions import did_you_mean

SEQUENCES = "sequences"
"""The buffer that networks with memory learn from."""


class Algorithm(Protocol):
    """Improves the weights of a policy from batches. It knows no environment, file, socket or clock."""

    policies: Policies
    train_state: TrainState
    """What it trains, and everything else that its next update depends on."""

    def update(self, batch: Any) -> Update:
        """Learn from one batch: a `TensorBatch` where its buffer yields transitions, else what the buffer yields."""


class UpdateResult(NamedTuple):
    """The outcome of an update as numbers and arrays."""

    metrics: dict[str, float]
    feedback: dict[str, Array]
    """Per row of the batch, for the buffer."""


def run_update(algorithm: Algorithm, batch: Any) -> UpdateResult:
    """Let an algorithm learn from one batch of its buffer: tensors in, numbers out."""
    with algorithm.train_state.splitter.ranks.updating():
        update = algorithm.update(algorithm.train_state.tensors(batch))
    result = result_of(update)
    factors = algorithm.train_state.schedule_factors
    result.metrics.update({f"schedule_{name}": factor for name, factor in factors.items()})
    return result


def result_of(update: Update) -> UpdateResult:
    """What an algorithm returned, as numbers and arrays."""
    on_device = {name: value for name, value in update.metrics.items() if isinstance(value, torch.Tensor)}
    metrics = {name: value for name, value in update.metrics.items() if not isinstance(value, torch.Tensor)}
    for name, value in on_device.items():
        if value.ndim:
            raise ValueError(f"Metric '{name}' has shape {tuple(value.shape)}; report one number, such as its mean.")
    if on_device:
        # One transfer for all of them.
        metrics |= dict(zip(on_device, torch.stack(list(on_device.values())).tolist(), strict=True))
    return UpdateResult(metrics, {name: values.cpu().numpy() for name, values in update.feedback.items()})


class UpdateWork(NamedTuple):
    """How much an algorithm computes; a server limits it."""

    gradient_steps: float
    """For each step of experience."""
    epochs: int = 1
    """Passes over one batch."""
    critics: int = 1
    """Networks of the size of the critic."""


class AlgorithmConfig(Config):
    """Hyperparameters of an algorithm, and the buffer and pace it learns with."""

    buffers: ClassVar[tuple[str, ...]]
    """Names of the buffers it can learn from; the first is the default."""
    own_networks: ClassVar[str | None] = None
    """The setting that determines its networks, where `network` does not."""
    imitates: ClassVar[bool] = False
    """Whether what it builds is an `Imitator`."""
    needs_data: ClassVar[bool] = False
    """Whether it learns from recorded data only, and not from what its own policy did."""
    schedulable: ClassVar[tuple[str, ...]] = ("lr",)
    """Settings that may have a schedule."""

    gamma: float = Field(0.99, ge=0, le=1)
    """Discount per step. Nearer to 1 looks further ahead."""
    imitate: ImitationConfig | None = None
    """Start from decisions of the incumbent, such as `{decisions: 5000}`: those that a live system recorded with
    `episode.took`, or those of `environment.incumbent`."""

    center_rewards: bool = False
    """Subtract the running mean of the rewards of decisions (arXiv:2405.09999). For tasks without end, where values
    would otherwise mostly hold what all states have in common; where episodes end, it changes what is best."""
    schedules: dict[str, Annotated[ScheduleConfig, SCHEDULES]] = {}
    """Settings that change over the run, such as `{lr: linear, entropy_coef: {type: cosine, end: 0.1}}`: each is
    multiplied by a factor that begins at 1. A schedule of `lr` replaces `anneal_lr`."""

    optimizer: Annotated[OptimizerConfig, OPTIMIZERS] | None = None
    """How gradients become steps, such as `adamw` or `{name: sgd, momentum: 0.9}`. If not given it is Adam, and LaProp
    where the algorithm learns a world model. Other optimizers usually need another `lr`."""

    @field_validator("optimizer", mode="before")
    @classmethod
    def _read_optimizer(cls, optimizer: Any) -> Any:
        return as_optimizer(optimizer)

    @field_validator("schedules", mode="before")
    @classmethod
    def _read_schedules(cls, schedules: Any) -> Any:
        if not isinstance(schedules, Mapping):
            return schedules
        return {name: as_schedule(value) for name, value in schedules.items()}

    @field_validator("schedules")
    @classmethod
    def _can_schedule(cls, schedules: dict[str, ScheduleConfig]) -> dict[str, ScheduleConfig]:
        for name in schedules:
            if name not in cls.schedulable:
                known = ", ".join(cls.schedulable)
                hint = did_you_mean(name, cls.schedulable)
                raise ValueError(f"'{name}' cannot have a schedule here{hint or ';'} expected one of {known}")
        return schedules

    @field_validator("imitate")
    @classmethod
    def _can_imitate(cls, imitate: ImitationConfig | None) -> ImitationConfig | None:
        if imitate is not None and not cls.imitates:
            raise ValueError("this algorithm cannot imitate; use ppo, dqn or sac, or leave it out")
        return imitate

    @property
    def horizon_seconds(self) -> float | None:
        """Seconds after which something is worth 1/e, where it discounts by elapsed time instead of by `gamma`."""
        return None

    @property
    def step_gamma(self) -> float:
        """The discount that all steps share; 1 where each step has its own, by time."""
        return self.gamma if self.horizon_seconds is None else 1.0

    @abstractmethod
    def build(self, problem: Problem) -> Algorithm:
        """The algorithm for one problem."""

    @abstractmethod
    def pace(self, buffer_size: int) -> OnceFresh | Ratio:
        """When its buffer yields batches."""

    def steps_between_updates(self, buffer_size: int) -> int:
        """Environment steps, over all lanes, to collect between two calls of `learn`."""
        return buffer_size if isinstance(self.pace(buffer_size), OnceFresh) else 1

    def update_size(self) -> int:
        """Rows in one gradient step; only the choice of the number of threads depends on it."""
        return 256

    def work(self, buffer_size: int) -> UpdateWork:
        """How much it computes."""
        pace = self.pace(buffer_size)
        return UpdateWork(1 / pace.steps if isinstance(pace, OnceFresh) else pace.updates_per_step)

    def own_weights(self, observation: tuple[ArraySpec, ...], action: ActionSpec) -> int | None:
        """Weights of networks that its own settings define; None if it has those of `network`."""
        return None

    @property
    def window(self) -> int:
        """Consecutive steps that one drawn transition spans."""
        return 1

    @classmethod
    def replays_sequences(cls, networks: NetworksConfig) -> bool:
        """Whether it learns from sequences of replay because a network that it would train has memory."""
        return False

    def sequence_plan(self) -> SequencePlan:
        """The sequences that it learns from where `replays_sequences`."""
        raise NotImplementedError(f"{type(self).__name__} does not learn from sequences of replay.")


ALGORITHMS: Registry[AlgorithmConfig] = Registry("algorithm", AlgorithmConfig)
register_algorithm = ALGORITHMS.register


def with_default_buffer(values: Any) -> Any:
    """The raw values of a config, with the algorithm's default buffer if no buffer type is given.

    Malformed values are passed on unchanged, for validation to report.
    """
    if not isinstance(values, dict):
        return values
    algorithm, buffer = values.get("algorithm"), values.get("buffer") or {}
    name = algorithm.get("name") if isinstance(algorithm, dict) else None
    if not isinstance(name, str) or name not in ALGORITHMS or not isinstance(buffer, dict) or "type" in buffer:
        return values
    chosen = ALGORITHMS.type(name)
    default = SEQUENCES if chosen.replays_sequences(_networks(values.get("network"))) else chosen.buffers[0]
    return {**values, "buffer": {"type": default, **buffer}}


def _networks(values: Any) -> NetworksConfig:
    """The networks of a config's raw values; the usual ones if these are malformed, which validation reports."""
    try:
        return parse(NetworksConfig, values or {})
    except ConfigError:
        return NetworksConfig()

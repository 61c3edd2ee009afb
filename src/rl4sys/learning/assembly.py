"""Puts a learner together, for runs and for servers alike."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from rl4sys.config import ConfigError
from rl4sys.engine import ALGORITHMS, Algorithm, AlgorithmConfig, Problem, TrainState, build_buffer, pace_of
from rl4sys.experience import ArraySpec
from rl4sys.learning.incumbent_decisions import IncumbentDecisions
from rl4sys.learning.learner import Learner
from rl4sys.learning.normalizers import ObservationStatistics, RewardScale
from rl4sys.learning.reward_centering import RewardCentering
from rl4sys.learning.skipped_updates import MAX_SKIPPED_IN_ROW
from rl4sys.learning.time_discount import TimeDiscount
from rl4sys.networks import NetworksConfig
from rl4sys.policy import ActionSpec
from rl4sys.replay import BufferConfig, BufferContext, Ratio
from rl4sys.seeding import Seeds

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LearnerAssembly:
    """The configs that determine a learner. Equal assemblies learn the same from the same segments."""

    algorithm: AlgorithmConfig
    network: NetworksConfig
    buffer: BufferConfig
    seeds: Seeds
    device: torch.device
    normalize_obs: bool = False
    normalize_reward: bool = False
    compile: bool = False
    total_steps: int | None = None
    max_skipped_in_row: int = MAX_SKIPPED_IN_ROW

    def build_algorithm(self, observation: tuple[ArraySpec, ...], action: ActionSpec) -> Algorithm:
        """The algorithm with initial weights."""
        self._require_suitable_settings()
        problem = Problem(
            observation=observation,
            action=action,
            networks=self.network,
            device=self.device,
            seeds=Seeds(self.seeds.integer("algorithm")),
            standardize=self.normalize_obs,
            compile=self.compile and _can_compile(),
            algorithm=_name_of(self.algorithm),
            schedules=self.algorithm.schedules,
            optimizer=self.algorithm.optimizer,
        )
        # The number of threads changes the last bits of orthogonal matrices, and it is measured later.
        with _one_thread():
            algorithm = self.algorithm.build(problem)
        if not isinstance(getattr(algorithm, "train_state", None), TrainState):
            raise ConfigError(
                f"{type(algorithm).__name__} has no train_state. Since version 0.2 algorithms declare their networks "
                f"through TrainState, which saves and publishes them; docs/own_algorithm.md shows how."
            )
        return algorithm

    def _require_suitable_settings(self) -> None:
        """Refuse settings that the algorithm would ignore."""
        if self.algorithm.imitate is not None and self.algorithm.replays_sequences(self.network):
            raise ConfigError(
                f"algorithm.imitate: {_name_of(self.algorithm)} cannot imitate with a network that has memory. Use "
                f"algorithm.name=ppo, or network.actor.type=mlp."
            )
        name, window = _name_of(self.algorithm), self.algorithm.window
        if (
            self.algorithm.horizon_seconds is not None
            and window > 1
            and not self.algorithm.replays_sequences(self.network)
        ):
            raise ConfigError(
                f"algorithm.horizon: {name} discounts by time one step at a time. Set algorithm.n_step=1."
            )
        setting = self.algorithm.own_networks
        if setting is None:
            return
        name = ALGORITHMS.name_of(self.algorithm)
        if self.network != NetworksConfig():
            raise ConfigError(f"{name} has its own networks: set {setting}, and leave out the section network.")
        if self.normalize_obs:
            raise ConfigError(f"{name} scales observations itself: set environment.normalize_obs=false.")

    def build_learner(self, algorithm: Algorithm, context: BufferContext, pace_steps: int | None = None) -> Learner:
        """The learner around an algorithm; `pace_steps` replaces the buffer's size in the algorithm's pace."""
        pace = pace_of(self.algorithm, self.network, pace_steps or self.buffer.size)
        horizon = self.algorithm.horizon_seconds
        incumbent = IncumbentDecisions(self.algorithm.imitate, replays=isinstance(pace, Ratio))
        return Learner(
            algorithm,
            build_buffer(self.algorithm, self.network, self.buffer, pace, self.seeds.generator("replay"), context),
            total_steps=self.total_steps,
            observations=ObservationStatistics(context.observation) if self.normalize_obs else None,
            rewards=RewardScale(self.algorithm.step_gamma) if self.normalize_reward else None,
            centering=RewardCentering() if self.algorithm.center_rewards else None,
            time=None if horizon is None else TimeDiscount(horizon),
            incumbent=incumbent,
            max_skipped_in_row=self.max_skipped_in_row,
        )


def _name_of(algorithm: AlgorithmConfig) -> str:
    """The name of an algorithm, for errors; one that is built in code need not be registered."""
    try:
        return ALGORITHMS.name_of(algorithm)
    except ConfigError:
        return type(algorithm).__name__


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _can_compile() -> bool:
    """Whether there is a C++ compiler, without which `torch.compile` fails at the first update."""
    if any(shutil.which(name) for name in ("g++", "c++", "clang++")):
        return True
    _log.warning(
        "experiment.compile: no C++ compiler was found, so losses are not compiled; install one (on Debian: apt-get "
        "install g++)."
    )
    return False

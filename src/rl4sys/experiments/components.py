"""Builds the parts of a run from its config."""

from __future__ import annotations

import logging
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from rl4sys.algorithms import Algorithm
from rl4sys.collection import (
    Collected,
    DatasetSource,
    Demonstration,
    PipelinedSource,
    PipelineSetup,
    PooledSource,
    SteppedSource,
    share_of,
)
from rl4sys.config import ConfigError, located
from rl4sys.config.plugin_copies import plugin_texts
from rl4sys.environments import (
    AnyLanes,
    EnvironmentConfig,
    EnvironmentSpec,
    EpisodeSummary,
    Grade,
    GymnasiumConfig,
    Incumbent,
    Lanes,
    Step,
)
from rl4sys.experience import Array, Arrays, ArraySpec
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.experiments.ranks.shared_lanes import GatheredShares, SharesInTurn
from rl4sys.experiments.server_log import recorded_episodes
from rl4sys.learning import (
    EnvironmentGoals,
    Evaluation,
    Learner,
    LearnerAssembly,
    evaluate,
)
from rl4sys.learning.evaluation import EvaluationLanes
from rl4sys.policy import NUMPY
from rl4sys.replay import AvailableSpace, BufferContext, UnsuitableBuffer, require_space
from rl4sys.seeding import Seeds
from rl4sys.state import State
from rl4sys.weights import Version

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup

_log = logging.getLogger(__name__)


class Source(Protocol):
    """Delivers segments; only it knows where they come from."""

    def collect(self, newest: Version) -> Collected:
        """One turn of experience, by the newest policy or one of a known lag."""

    def state(self) -> State:
        """Where it is."""

    def restore(self, state: State) -> Sequence[str]:
        """Continue there; returns why that is not exact, if it is not."""

    def close(self) -> None:
        """Free what it holds."""


@dataclass(frozen=True, slots=True)
class Components:
    """Builds each part of one experiment with its own named seeds."""

    config: ExperimentConfig
    device: torch.device
    grade: Grade
    group: RankGroup | None = None
    """The ranks that share the run; without them, this process takes the parts of all ranks in turn."""
    kernels: str = NUMPY
    """The kernel set that runs policies in collection and evaluations."""

    @property
    def seeds(self) -> Seeds:
        """The root of all randomness."""
        return Seeds(self.config.experiment.seed)

    def setup(self, threads: int) -> dict[str, Any]:
        """What other ranks need to build the same components."""
        config = self.config.model_dump(mode="json")
        return {
            "config": config,
            "device": self.device.type,
            "grade": self.grade.name,
            "threads": threads,
            "kernels": self.kernels,
        }

    def describe_ranks(self) -> dict[str, Any]:
        """How many ranks there are, what connects them, and where they are."""
        if self.group is None:
            return {"count": self.config.training.ranks, "processes": 1, "backend": None, "hosts": [platform.node()]}
        backend = self.group.backend(self.device)
        return {"count": self.group.ranks, "processes": self.group.ranks, "backend": backend, "hosts": self.group.hosts}

    def environment_spec(self) -> EnvironmentSpec:
        """The observations and actions of the environment, found from one that is then closed."""
        lanes = self.config.environment.lanes(Seeds(0), 1, Grade.E3)
        try:
            return lanes.spec
        finally:
            lanes.close()

    def algorithm(self) -> Algorithm:
        """The algorithm, with fresh weights."""
        spec = self.environment_spec()
        algorithm = self._assembly().build_algorithm(spec.observation, spec.action)
        self._take_parts(algorithm)
        return algorithm

    def _take_parts(self, algorithm: Algorithm) -> None:
        """Let it compute this rank's parts of each batch, or those of all ranks in turn."""
        algorithm.train_state.splitter.ranks.take(self.config.training.ranks, self.group)

    def _assembly(self) -> LearnerAssembly:
        config = self.config
        return LearnerAssembly(
            algorithm=config.algorithm,
            network=config.network,
            buffer=config.buffer,
            seeds=self.seeds,
            device=self.device,
            normalize_obs=config.environment.normalize_obs,
            normalize_reward=config.environment.normalize_reward,
            compile=config.experiment.compile,
            total_steps=config.training.total_timesteps,
            max_skipped_in_row=config.stability.skipped_in_row,
        )

    def buffer_context(self, observation: tuple[ArraySpec, ...], scratch: Path) -> BufferContext:
        """What the buffer may know of this experiment."""
        return BufferContext(observation, scratch, self._environment_goals, self.config.environment.frames)

    def _environment_goals(self) -> EnvironmentGoals:
        environment = self.config.environment
        if not isinstance(environment, GymnasiumConfig):
            raise UnsuitableBuffer(
                f"{environment.name} cannot be asked how it rewards reaching a goal: set "
                f"buffer.goal_reward={{type: distance, threshold: …}} to what it does."
            )
        return EnvironmentGoals(environment.maker()())

    def learner(self, scratch: Path = Path("scratch"), algorithm: Algorithm | None = None) -> Learner:
        """The learner around an algorithm, a new one if none is given; a memory-mapped replay goes to `scratch`."""
        config, algorithm = self.config, algorithm or self.algorithm()
        explore = algorithm.policies.explore
        cost = config.buffer.cost(explore.segment_schema(), config.training.total_timesteps, config.environment.frames)
        require_space(cost, AvailableSpace.at(scratch))
        if cost is not None:
            _log.info("replay: %s", cost)
        # Where steps are spent on resets (at worst every second one), a turn cannot fill the buffer.
        size = config.buffer.size if config.environment.acts_every_step else -(-config.buffer.size // 2)
        # A given algorithm may have been built before there was a group.
        self._take_parts(algorithm)
        return self._assembly().build_learner(algorithm, self.buffer_context(explore.observation, scratch), size)

    def source(self, learner: Learner) -> Source:
        """Local collection, in this process or in others; with ranks, each has its share of the lanes."""
        self._require_demonstrable()
        if self.config.training.data is not None:
            return self._recorded(learner, self.config.training.data)
        config, explore = self.config, learner.algorithm.policies.explore
        lanes, ranks = config.environment.num_envs, config.training.ranks
        steps = -(-config.algorithm.steps_between_updates(config.buffer.size) // lanes)
        seed, noise_seed = self.seeds.integer("environments"), self.seeds.integer("decisions")
        plugins = [str(located(plugin)) for plugin in config.plugins]
        setup = PipelineSetup(
            config.environment, explore, steps, seed, noise_seed, self.grade, plugins, Path.cwd(), kernels=self.kernels
        )
        if ranks == 1:
            return self._lanes_source(setup)
        if self.group is not None:
            share = self._lanes_source(share_of(setup, self.group.rank, ranks))
            return GatheredShares(share, lanes // ranks, self.group)
        shares = [self._lanes_source(share_of(setup, rank, ranks)) for rank in range(ranks)]
        return SharesInTurn(shares, lanes // ranks)

    def _recorded(self, learner: Learner, data: str) -> Source:
        """Recorded episodes in place of collection."""
        explore, seed = learner.algorithm.policies.explore, self.seeds.integer("environments")
        source, room = DatasetSource(recorded_episodes(data), explore, seed), self.config.buffer.size
        if source.steps > room:
            _log.warning(
                "training.data has %d steps, and the buffer holds the last %d of them; set buffer.size=%d to learn "
                "from all of them.",
                source.steps,
                room,
                source.steps,
            )
        return source

    def _lanes_source(self, setup: PipelineSetup) -> Source:
        """The source of some lanes: all of them, or the share of a rank."""
        training, environment = self.config.training, setup.environment
        if training.pipelined and training.collection == "ray":
            return self._remote_source(setup, training.collectors)
        if training.pipelined:
            return PipelinedSource(setup) if training.collectors == 1 else PooledSource(setup, training.collectors)
        lanes = environment.lanes(Seeds(setup.seed), environment.num_envs, setup.grade)
        shown = self._demonstration(lanes.spec)
        timed = self.config.algorithm.horizon_seconds is not None
        if timed and not (isinstance(lanes, Lanes) and lanes.has_time):
            lanes.close()
            raise ConfigError(
                f"algorithm.horizon: {environment.name} gives no times. Let its reset and step put seconds into "
                f"info['now'], or use algorithm.gamma."
            )
        return SteppedSource(
            *(lanes, setup.policy, setup.steps, setup.noise_seed, setup.client, shown),
            timed=timed,
            kernels=self.kernels,
        )

    def _require_demonstrable(self) -> None:
        """Refuse imitation without an incumbent, and the reverse, and what needs collection in this process."""
        is_elsewhere = self.config.training.pipelined or self.config.training.ranks > 1
        if is_elsewhere and self.config.algorithm.horizon_seconds is not None:
            raise ConfigError("algorithm.horizon needs training.pipelined=false and training.ranks=1 in a local run.")
        imitate, incumbent = self.config.algorithm.imitate, self.config.environment.incumbent
        if (imitate is None) == (incumbent is None):
            if incumbent is None or not is_elsewhere:
                return
            raise ConfigError(
                "environment.incumbent decides in the process that learns: set training.pipelined=false and "
                "training.ranks=1."
            )
        if incumbent is None:
            raise ConfigError(
                "algorithm.imitate: there is nothing to imitate in a local run. Set environment.incumbent to the "
                "function that decides, such as my_system:heuristic."
            )
        raise ConfigError("environment.incumbent is of use only for imitation: set algorithm.imitate, or leave it out.")

    def _demonstration(self, spec: EnvironmentSpec) -> Demonstration | None:
        imitate, incumbent = self.config.algorithm.imitate, self.config.environment.incumbent
        if imitate is None or incumbent is None:
            return None
        return Demonstration(Incumbent(incumbent, spec), imitate.decisions)

    def _remote_source(self, setup: PipelineSetup, processes: int) -> Source:
        """The same collectors on a Ray cluster; Ray is imported only if it is asked for."""
        from rl4sys.collection.cluster_on_ray import ClusterSource

        plugins = plugin_texts(self.config.plugins)
        return ClusterSource(replace(setup, plugins=self.config.plugins), processes, plugins, self.config.where.address)

    def evaluation_environments(self) -> EvaluationEnvironments:
        """Environments for all evaluations of a run."""
        return EvaluationEnvironments(self.config.environment, self.grade)

    def evaluate(
        self, learner: Learner, episodes: int, seeds: Seeds, environments: EvaluationEnvironments | None = None
    ) -> Evaluation:
        """Fresh episodes of the newest exploit policy, in the given environments or in new ones."""
        used = environments or self.evaluation_environments()
        try:
            exploit, weights = learner.algorithm.policies.exploit, learner.store.newest.blob
            return evaluate(exploit, weights, used.lanes, episodes, seeds, kernels=self.kernels)
        finally:
            if environments is None:
                used.close()


class EvaluationEnvironments:
    """The environments that a run evaluates in, kept where a reset with a seed makes an old one equal to a new one.

    That is so for grade E1. Environments of other grades may remember more than their episode, and an evaluation must
    not depend on the evaluations before it: they are made for each evaluation.
    """

    def __init__(self, config: EnvironmentConfig, grade: Grade) -> None:
        self._config, self._keeps = config.for_evaluation(), grade is Grade.E1
        self._kept: dict[int, Lanes] = {}

    def lanes(self, seeds: Seeds, count: int) -> EvaluationLanes:
        """`count` environments, whose next reset takes these seeds."""
        if count in self._kept:
            self._kept[count].reseed(seeds)
            return _Lent(self._kept[count])
        lanes: AnyLanes = self._config.lanes(seeds, count, Grade.E3)
        if not self._keeps or not isinstance(lanes, Lanes):
            return lanes
        self._kept[count] = lanes
        return _Lent(lanes)

    def close(self) -> None:
        """Close the environments that are kept."""
        for lanes in self._kept.values():
            lanes.close()
        self._kept.clear()


class _Lent:
    """Lanes that stay open when an evaluation closes them."""

    def __init__(self, lanes: Lanes) -> None:
        self._lanes = lanes
        self.count = lanes.count

    def reset(self) -> Arrays:
        return self._lanes.reset()

    def step(self, action: Array) -> Step:
        return self._lanes.step(action)

    def episodes(self) -> list[EpisodeSummary]:
        return self._lanes.episodes()

    def close(self) -> None:
        self._lanes.episodes()

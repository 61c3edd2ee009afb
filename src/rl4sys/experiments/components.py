"""Builds the parts of a run from its config."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from rl4sys.algorithms import Algorithm, Problem
from rl4sys.collection import Collected, PipelinedSource, PipelineSetup, SteppedSource
from rl4sys.environments import EnvironmentSpec, Grade
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.learning import Evaluation, Learner, ObservationStatistics, RewardScale, evaluate
from rl4sys.seeding import Seeds
from rl4sys.state import State
from rl4sys.weights import Version


class Source(Protocol):
    """Delivers segments; only it knows where they come from."""

    def collect(self, newest: Version) -> Collected:
        """One turn of experience, by the newest policy or one of a known lag."""

    def state(self) -> State:
        """Where it is."""

    def restore(self, state: State) -> Sequence[str]:
        """Go on there; returns why that is not exact, if it is not."""

    def close(self) -> None:
        """Free what it holds."""


@dataclass(frozen=True, slots=True)
class Components:
    """Builds each part of one experiment with its own named seeds."""

    config: ExperimentConfig
    device: torch.device
    grade: Grade

    @property
    def seeds(self) -> Seeds:
        """The root of all chance."""
        return Seeds(self.config.experiment.seed)

    def environment_spec(self) -> EnvironmentSpec:
        """What the environment shows and wants, learned from one that is then closed."""
        lanes = self.config.environment.lanes(Seeds(0), 1, Grade.E3)
        try:
            return lanes.spec
        finally:
            lanes.close()

    def algorithm(self) -> Algorithm:
        """The algorithm, with fresh weights."""
        spec, config = self.environment_spec(), self.config
        problem = Problem(
            observation=spec.observation,
            action=spec.action,
            networks=config.network,
            device=self.device,
            seeds=Seeds(self.seeds.integer("algorithm")),
            standardize=config.environment.normalize_obs,
        )
        return config.algorithm.build(problem)

    def learner(self) -> Learner:
        """The learner around a fresh algorithm."""
        config, algorithm = self.config, self.algorithm()
        # Where steps are spent on resets (at worst every second one), a turn cannot fill the buffer.
        size = config.buffer.size if config.environment.acts_every_step else -(-config.buffer.size // 2)
        pace = config.algorithm.pace(size)
        buffer = config.buffer.build(pace, self.seeds.generator("replay"), config.algorithm.window)
        observation = algorithm.policies.explore.observation
        return Learner(
            algorithm,
            buffer,
            total_steps=config.training.total_timesteps,
            observations=ObservationStatistics(observation) if config.environment.normalize_obs else None,
            rewards=RewardScale(config.algorithm.gamma) if config.environment.normalize_reward else None,
        )

    def source(self, learner: Learner) -> Source:
        """Local collection, in this process or in a second one."""
        config, explore = self.config, learner.algorithm.policies.explore
        lanes = config.environment.num_envs
        steps = -(-config.algorithm.steps_between_updates(config.buffer.size) // lanes)
        seed, noise_seed = self.seeds.integer("environments"), self.seeds.integer("decisions")
        if config.training.pipelined:
            setup = PipelineSetup(
                config.environment, explore, steps, seed, noise_seed, self.grade, config.plugins, Path.cwd()
            )
            return PipelinedSource(setup)
        return SteppedSource(config.environment.lanes(Seeds(seed), lanes, self.grade), explore, steps, noise_seed)

    def evaluate(self, learner: Learner, episodes: int, seeds: Seeds) -> Evaluation:
        """How good the newest policy is when it does its best, in environments of its own."""
        return evaluate(
            learner.algorithm.policies.exploit,
            learner.store.newest.blob,
            lambda lane_seeds, count: self.config.environment.lanes(lane_seeds, count, Grade.E3),
            episodes,
            seeds,
        )

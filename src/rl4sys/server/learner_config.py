"""From what a client asked for to a learner. Only workers import this: it needs torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms import ALGORITHMS, AlgorithmConfig, Problem
from rl4sys.config import Config, ConfigError, parse
from rl4sys.learning import Learner, ObservationStatistics, RewardScale
from rl4sys.networks import NetworksConfig
from rl4sys.replay import BUFFERS, BufferConfig, TrajectoryConfig
from rl4sys.seeding import Seeds
from rl4sys.server.setups import LearnerSetup


class LearnerConfig(Config):
    """How a learner of the server learns. A local experiment with the same settings learns the same."""

    algorithm: Annotated[AlgorithmConfig, ALGORITHMS]
    """The algorithm and its hyperparameters."""
    network: NetworksConfig = NetworksConfig()
    """What the policy and the critic are made of."""
    buffer: Annotated[BufferConfig, BUFFERS] = TrajectoryConfig()
    """Where experience waits; the algorithm's usual one if not given."""
    seed: int = Field(0, ge=0)
    """The root of all chance of the learner."""
    normalize_obs: bool = False
    """Standardize observations with statistics that travel with the weights."""
    normalize_reward: bool = False
    """Divide rewards by the deviation of the discounted return."""
    checkpoint_frequency: int = Field(20_000, ge=1)
    """Steps between two checkpoints. More write less, and take longer to catch up after a crash."""
    threads: int = Field(1, ge=1)
    """Threads that torch computes with. Another number changes the last bits of the weights."""

    @model_validator(mode="before")
    @classmethod
    def _complete_buffer(cls, values: Any) -> Any:
        """Without a type, the buffer is of the algorithm's usual one."""
        if not isinstance(values, dict):
            return values
        algorithm, buffer = values.get("algorithm"), values.get("buffer") or {}
        name = algorithm.get("name") if isinstance(algorithm, dict) else None
        if not isinstance(name, str) or name not in ALGORITHMS or not isinstance(buffer, dict) or "type" in buffer:
            return values
        return {**values, "buffer": {"type": ALGORITHMS.type(name).buffers[0], **buffer}}


def resolve(algorithm: str, parameters: Mapping[str, Any]) -> LearnerConfig:
    """The typed config of an algorithm and its parameters, or `ConfigError` with what was meant."""
    chosen = parameters.get("algorithm", {})
    if not isinstance(chosen, Mapping):
        raise ConfigError(f"algorithm: got {chosen!r}; expected a mapping of hyperparameters, such as {{'lr': 0.001}}")
    named = chosen.get("name", algorithm)
    if not isinstance(named, str) or named.casefold() != algorithm.casefold():
        raise ConfigError(f"algorithm.name: got {named!r}; the request names '{algorithm}'. Name it once.")
    return parse(LearnerConfig, {**parameters, "algorithm": {**chosen, "name": algorithm}})


def canonical(config: LearnerConfig) -> str:
    """A text with every default spelled out: equal configs give equal text."""
    return json.dumps(config.model_dump(mode="json"), sort_keys=True)


def build_learner(config: LearnerConfig, setup: LearnerSetup) -> Learner:
    """The learner with fresh weights, on the CPU, from the seeds that a local experiment would use."""
    seeds = Seeds(config.seed)
    problem = Problem(
        observation=setup.observation,
        action=setup.action,
        networks=config.network,
        device=torch.device("cpu"),
        seeds=Seeds(seeds.integer("algorithm")),
        standardize=config.normalize_obs,
    )
    algorithm = config.algorithm.build(problem)
    pace = config.algorithm.pace(config.buffer.size)
    return Learner(
        algorithm,
        config.buffer.build(pace, seeds.generator("replay"), config.algorithm.window),
        observations=ObservationStatistics(algorithm.policies.explore.observation) if config.normalize_obs else None,
        rewards=RewardScale(config.algorithm.gamma) if config.normalize_reward else None,
    )

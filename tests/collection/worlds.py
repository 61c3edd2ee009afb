"""Environments, policies and versions to collect with, and the plain loop that collecting must agree with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from rl4sys.algorithms import PPO, PPOConfig, Problem
from rl4sys.environments import EnvironmentSpec, Grade, GymnasiumConfig, Lanes, VectorAdapter
from rl4sys.experience import Ending, Segment
from rl4sys.networks import MlpConfig, NetworksConfig
from rl4sys.policy import Head, PolicySpec, ProgramBuilder
from rl4sys.seeding import Seeds
from rl4sys.weights import Version
from rl4sys.weights.versions import read_only_copy

SEEDS = Seeds(11)
SHORT_CHAIN = GymnasiumConfig(name="rl4sys/Chain-v0", kwargs={"n": 4}, max_episode_steps=3, num_envs=3)
"""Episodes of one to three steps; some terminate and some are truncated."""


def chain_lanes(count: int = 3, grade: Grade = Grade.E1) -> Lanes:
    lanes = SHORT_CHAIN.lanes(SEEDS, count, grade)
    assert isinstance(lanes, Lanes)
    return lanes


def chain_that_resets_within_a_step(count: int = 3) -> VectorAdapter:
    """The same environments behind a backend that spends the call after an end on the reset."""
    makers = [SHORT_CHAIN.maker()] * count
    return VectorAdapter(SyncVectorEnv(makers, autoreset_mode=AutoresetMode.NEXT_STEP), SEEDS)


def ppo_for(spec: EnvironmentSpec) -> PPO:
    network = MlpConfig(hidden_dims=(8,))
    networks = NetworksConfig(actor=network, critic=network)
    return PPOConfig().build(Problem(spec.observation, spec.action, networks, torch.device("cpu"), SEEDS))


def remembering_policy(spec: EnvironmentSpec) -> tuple[PolicySpec, Version]:
    """A policy with memory, whose decisions depend on it strongly."""
    builder = ProgramBuilder(spec.observation)
    hidden = builder.gru(builder.features(standardize=False), 4, "memory")
    scores = builder.linear(hidden, 2, "action")
    policy = PolicySpec(spec.action, builder.program(), Head("categorical", (scores,)))
    size = sum(int(np.prod(tensor.shape)) for tensor in policy.program.tensors)
    return policy, version(0, np.random.default_rng(0).normal(0, 2.0, size))


def version(number: int, flat: Any) -> Version:
    return Version(number, read_only_copy(np.asarray(flat, np.float32)))


def versions(algorithm: PPO, count: int) -> list[Version]:
    """Policies that differ."""
    first = algorithm.train_state.policy_weights()
    rng = np.random.default_rng(0)
    return [version(number, first + rng.normal(0, 1.0, first.size)) for number in range(count)]


def of_lane(segments: Iterable[Segment], lane: int) -> list[Segment]:
    return [segment for segment in segments if segment.stream.lane == lane]


def assert_same_segments(one: Iterable[Segment], other: Iterable[Segment]) -> None:
    """Equal in every field, to the bit."""
    for a, b in zip(one, other, strict=True):
        assert contents(a) == contents(b)


def contents(segment: Segment) -> Any:
    arrays = (segment.observation, {"action": segment.action, "reward": segment.reward}, segment.extras, segment.carry)
    columns = [(name, a.dtype, a.shape, a.tobytes()) for group in arrays for name, a in group.items()]
    place = (segment.stream, segment.episode, segment.start, segment.policy_version, segment.ending)
    return place, columns


def replayed(environment: gymnasium.Env[Any, Any], lane: int, actions: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """What a plain loop sees when it takes these actions in one environment."""
    observation, _ = environment.reset(seed=SEEDS.integer("environment", lane) % 2**31)
    episode, step = 0, 0
    for action in actions:
        following, reward, terminated, truncated, _ = environment.step(action)
        ending = Ending.TERMINATED if terminated else Ending.TRUNCATED if truncated else Ending.CONTINUES
        yield {
            "episode": episode,
            "step": step,
            "observation": observation.tolist(),
            "following": following.tolist(),
            "reward": np.float32(reward),
            "ending": ending,
        }
        step += 1
        if ending is not Ending.CONTINUES:
            following, _ = environment.reset()
            episode, step = episode + 1, 0
        observation = following


def recorded(segments: Iterable[Segment]) -> Iterator[dict[str, Any]]:
    """The same values from segments."""
    for segment in segments:
        rows = segment.observation["observation"].tolist()
        for t in range(segment.steps):
            yield {
                "episode": segment.episode,
                "step": segment.start + t,
                "observation": rows[t],
                "following": rows[t + 1],
                "reward": segment.reward[t],
                "ending": segment.ending if t == segment.steps - 1 else Ending.CONTINUES,
            }

"""Problems and batches small enough to compute by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rl4sys.algorithms import DQN, PPO, DQNConfig, PPOConfig, Problem
from rl4sys.experience import Array, ArraySpec, Ending, Segment, Sequences, StreamKey, Transitions
from rl4sys.networks import MlpConfig, NetworksConfig
from rl4sys.policy import MASK, ActionSpec, BoxAction, DiscreteAction, MultiDiscreteAction
from rl4sys.replay import OnceFresh, TrajectoryBuffer
from rl4sys.seeding import Seeds

DISCRETE, MULTI = DiscreteAction(3), MultiDiscreteAction((3, 2))
BOX = BoxAction((-1.0, -1.0), (1.0, 1.0))
FEATURES = 3


def problem(action: ActionSpec = DISCRETE, *, masked: bool = False, standardize: bool = False) -> Problem:
    """Three features; a network with one hidden layer of four."""
    observation = [ArraySpec("observation", "float32", (FEATURES,))]
    if masked:
        observation.append(ArraySpec(MASK, "bool", (choices(action),)))
    network = MlpConfig(hidden_dims=(4,))
    networks = NetworksConfig(actor=network, critic=network)
    return Problem(tuple(observation), action, networks, torch.device("cpu"), Seeds(3), standardize)


def choices(action: ActionSpec) -> int:
    return action.n if isinstance(action, DiscreteAction) else sum(getattr(action, "sizes", ()))


def ppo(action: ActionSpec = DISCRETE, *, masked: bool = False, standardize: bool = False, **config: Any) -> PPO:
    return PPOConfig(**config).build(problem(action, masked=masked, standardize=standardize))


def dqn(*, masked: bool = False, standardize: bool = False, **config: Any) -> DQN:
    return DQNConfig(**config).build(problem(masked=masked, standardize=standardize))


def segment(rng: np.random.Generator, asked: Problem, steps: int, *, lane: int = 0, **where: Any) -> Segment:
    """Random experience. Every choice is allowed by its mask; log-probabilities are plausible."""
    observation = {"observation": rng.normal(size=(steps + 1, FEATURES)).astype(np.float32)}
    action = random_actions(rng, asked.action, steps)
    if asked.mask is not None:
        observation[MASK] = allowing(rng, asked.action, action, steps + 1)
    position = {"episode": 0, "start": 0, "policy_version": 0, "ending": Ending.TERMINATED} | where
    return Segment(
        stream=StreamKey("test", "agent", lane),
        observation=observation,
        action=action,
        reward=rng.normal(size=steps).astype(np.float32),
        extras={"log_prob": rng.normal(-1.0, 0.3, steps).astype(np.float32)},
        carry={},
        **position,
    )


def random_actions(rng: np.random.Generator, action: ActionSpec, count: int) -> Array:
    match action:
        case DiscreteAction(n=n):
            return rng.integers(n, size=count)
        case MultiDiscreteAction(sizes=sizes):
            return np.stack([rng.integers(n, size=count) for n in sizes], axis=1)
        case BoxAction(size=size):
            return rng.normal(size=(count, size)).astype(np.float32)


def allowing(rng: np.random.Generator, action: ActionSpec, chosen: Array, count: int) -> Array:
    """Masks that allow what was chosen, and each other choice with even odds."""
    mask = rng.random((count, choices(action))) < 0.5
    firsts = np.cumsum([0, *getattr(action, "sizes", ())])[:-1] if chosen.ndim == 2 else np.zeros(1, int)
    for row, columns in enumerate(chosen.reshape(len(chosen), -1) + firsts):
        mask[row, columns] = True
    return mask


def sequences(segments: Sequence[Segment], ages: Sequence[int] = ()) -> Sequences:
    """The batch that a buffer makes of these segments."""
    buffer = TrajectoryBuffer(OnceFresh(steps=1, max_age=99))
    for index, item in enumerate(segments):
        buffer.add(item, ages[index] if ages else 0)
    (batch,) = buffer.due()
    return batch


def fixed_batch(asked: Problem, ages: Sequence[int] = ()) -> Sequences:
    """Three episodes in two lanes: one continues, one is truncated, one terminates."""
    rng = np.random.default_rng(0)
    parts = [
        segment(rng, asked, 6, lane=0, ending=Ending.TRUNCATED),
        segment(rng, asked, 4, lane=0, episode=1, ending=Ending.CONTINUES),
        segment(rng, asked, 7, lane=1, ending=Ending.TERMINATED),
    ]
    return sequences(parts, ages)


def transitions(asked: Problem, count: int = 12) -> Transitions:
    """Independent transitions, a third of them terminal, with importance weights."""
    rng = np.random.default_rng(1)
    steps = segment(rng, asked, count)
    return Transitions(
        observation={name: array[:-1] for name, array in steps.observation.items()},
        action=steps.action,
        reward=steps.reward,
        discount=np.array([1.0, 1.0, 0.0] * count, np.float32)[:count],
        next_observation={name: array[1:] for name, array in steps.observation.items()},
        span=np.ones(count, np.int64),
        extras={},
        weight=rng.uniform(0.2, 1.0, count).astype(np.float32),
        ids=np.arange(count),
    )

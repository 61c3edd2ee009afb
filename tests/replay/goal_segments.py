"""Segments with goals, in which every number identifies its step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from rl4sys.experience import Ending, Segment
from rl4sys.replay import DistanceReward, Hindsight, HindsightBuffer, Ratio
from rl4sys.replay.hindsight import Strategy

from .histories import history
from .segments import segment

ASKED = -1.0
"""The desired goal of every episode in these tests, which none reaches."""
NEAR = DistanceReward(threshold=0.1)


def with_goals(item: Segment) -> Segment:
    """The achieved goal is the clock, so the goal of a relabelled transition identifies the step it comes from."""
    clock = item.observation["clock"]
    observation = {"clock": clock, "achieved_goal": clock[:, None], "desired_goal": np.full((len(clock), 1), ASKED)}
    reward = np.full(item.steps, -1.0, np.float32)
    arrays = {name: array.astype(np.float32) for name, array in observation.items()}
    return replace(item, observation=arrays, reward=reward)


def goals(steps: int, *, lane: int = 0, episode: int = 0, start: int = 0, ending: Ending = Ending.CONTINUES) -> Segment:
    return with_goals(segment(steps, lane=lane, episode=episode, start=start, ending=ending))


def goal_history(seed: int, segments: int) -> Iterator[Segment]:
    return map(with_goals, history(seed, segments))


def hindsight(
    capacity: int,
    strategy: Strategy = "future",
    *,
    relabel: int = 4,
    batch_size: int = 200,
    seed: int = 0,
    near: DistanceReward = NEAR,
) -> HindsightBuffer:
    pace = Ratio(1, 0, batch_size)
    return HindsightBuffer(capacity, pace, np.random.default_rng(seed), Hindsight(near, strategy, relabel))

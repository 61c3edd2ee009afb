"""Segments in which every number identifies its step."""

from __future__ import annotations

import numpy as np

from rl4sys.experience import Ending, Segment, StreamKey


def segment(
    steps: int,
    *,
    lane: int = 0,
    episode: int = 0,
    start: int = 0,
    ending: Ending = Ending.CONTINUES,
    features: int = 2,
) -> Segment:
    """Before step s of episode e of lane l the observation is 10⁴l + 100e + s; the reward is one more."""
    clock = lane * 10_000 + episode * 100 + start + np.arange(steps + 1, dtype=np.float32)
    return Segment(
        stream=StreamKey("client", lane=lane),
        episode=episode,
        start=start,
        policy_version=0,
        ending=ending,
        observation={"state": np.repeat(clock[:, None], features, axis=1), "clock": clock.copy()},
        action=np.arange(start, start + steps, dtype=np.int64),
        reward=clock[:-1] + 1,
        extras={"log_prob": -clock[:-1] - 1},
        carry={"hidden": np.full(3, clock[0])},
    )

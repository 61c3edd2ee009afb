"""Rules that decide in small environments, to be imitated."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl4sys.experience import Array

NOT_A_FUNCTION = 1
_ties = np.random.default_rng(0)


def balance(observation: Array) -> int:
    """Push CartPole to the side that the pole falls to."""
    return int(observation[2] + 0.5 * observation[3] > 0.0)


def damp(observation: Array) -> list[float]:
    """Push Pendulum against its velocity."""
    return [-float(observation[2]) / 4.0]


def best_candidate(observation: Any) -> int:
    """Choose the candidate of CandidateChoice whose first feature fits the context best."""
    return int((observation["candidates"][:, 0] * observation["context"][0]).argmax())


def nonsense(observation: Any) -> int:
    """Choose an action that CartPole does not have."""
    return 2


def fewest_in_flight(observation: Any) -> int:
    """Least connections: a backend of LoadBalancing with the fewest requests in flight, any of them at random."""
    in_flight = observation["candidates"][:, 0]
    return int(_ties.choice(np.flatnonzero(in_flight == in_flight.min())))

"""Rollouts of a trained policy and the values of its critics, as plain arrays to plot and count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rl4sys.environments import make_gymnasium
from rl4sys.environments.goals import GOALS, WALL
from rl4sys.experience import Array, StreamKey
from rl4sys.policy import KeyedNoise, NumpyPolicy

ENVIRONMENT = "rl4sys/MultiGoal-v0"
PLACES = ((0.0, 0.0), (-2.5, 0.0), (2.5, 2.5))
"""Positions at which the values of all actions are computed."""
SAMPLES = 250
"""Actions sampled at each of them."""
FINENESS = 41
"""Points along each axis of a grid."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Rollouts and values of one algorithm after training."""

    paths: list[Array]
    """Positions [T + 1, 2] of each rollout."""
    goals: list[int | None]
    """Which goal each rollout reached."""
    soft_value: Array
    """[y, x]: log ∫ exp Q da over the plane."""
    q: list[Array]
    """[y, x] for each place: Q of the actions from −1 to 1."""
    actions: list[Array]
    """[n, 2] for each place: samples of the policy."""

    def counts(self) -> list[int]:
        """How many rollouts reached each goal."""
        return [self.goals.count(goal) for goal in range(len(GOALS))]


def analyse(algorithm: Any, weights: Array, rollouts: int, seed: int) -> Findings:
    """Run episodes with the explore policy, and evaluate the critics on grids."""
    policy = NumpyPolicy(algorithm.policies.explore, weights)
    rollouts_made = [_roll_out(policy, seed, lane) for lane in range(rollouts)]
    places = np.array(PLACES, np.float32)
    chance = KeyedNoise(seed, _streams("sample", SAMPLES), policy.noise_size).at(0)
    actions = [policy.act({"observation": np.tile(place, (SAMPLES, 1))}, chance).action.copy() for place in places]
    return Findings(
        paths=[path for path, _ in rollouts_made],
        goals=[goal for _, goal in rollouts_made],
        soft_value=_soft_value(algorithm),
        q=[_q(algorithm, np.tile(place, (FINENESS**2, 1)), _grid(1.0)).reshape(FINENESS, -1) for place in places],
        actions=actions,
    )


def _streams(purpose: str, count: int) -> list[StreamKey]:
    return [StreamKey(purpose, "agent", lane) for lane in range(count)]


def _roll_out(policy: NumpyPolicy, seed: int, lane: int) -> tuple[Array, int | None]:
    """The positions of one episode, and the goal it reached, if any."""
    noise = KeyedNoise(seed, [StreamKey("rollout", "agent", lane)], policy.noise_size)
    environment = make_gymnasium(ENVIRONMENT, {})
    position, info = environment.reset(seed=seed * 100_000 + lane)
    path, ended = [position], False
    while not ended:
        action = policy.act({"observation": position[None]}, noise.at(len(path))).action[0]
        position, _, terminated, truncated, info = environment.step(action)
        path.append(position)
        ended = terminated or truncated
    environment.close()
    return np.array(path), info.get("goal")


def _grid(reach: float) -> Array:
    """[n², 2]: points of a square grid, row by row."""
    axis = np.linspace(-reach, reach, FINENESS, dtype=np.float32)
    return np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)


def _q(algorithm: Any, observation: Array, action: Array) -> Array:
    """[n]: the minimum over critics."""
    observations = {"observation": torch.from_numpy(observation)}
    with torch.no_grad():
        values: Array = algorithm.critics(observations, torch.from_numpy(action)).amin(0).numpy()
    return values.copy()


def _soft_value(algorithm: Any) -> Array:
    """The soft value of every position: log ∫ exp Q da."""
    axis = np.linspace(-0.9, 0.9, 10, dtype=np.float32)
    actions = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    places = _grid(WALL)
    values = np.stack([_q(algorithm, places, np.tile(action, (len(places), 1))) for action in actions])
    peak = values.max(axis=0)
    return np.asarray(peak + np.log(4.0 * np.exp(values - peak).mean(axis=0))).reshape(FINENESS, -1)

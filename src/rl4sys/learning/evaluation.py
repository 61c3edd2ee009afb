"""Evaluation of a policy: whole episodes in fresh environments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rl4sys.environments import EpisodeSummary, Step
from rl4sys.experience import Array, Arrays, StreamKey
from rl4sys.policy import NUMPY, KeyedNoise, PolicySpec, RunningPolicy, run_policy
from rl4sys.seeding import Seeds

_MAX_LANES = 16
_MAX_STEPS = 100_000


class EndlessEpisode(RuntimeError):
    """An evaluation episode does not end."""


class EvaluationLanes(Protocol):
    """Fresh environments to evaluate in."""

    @property
    def count(self) -> int:
        """The number of lanes."""

    def reset(self) -> Arrays:
        """Start an episode in every lane."""

    def step(self, action: Array) -> Step:
        """Act once in every lane."""

    def episodes(self) -> list[EpisodeSummary]:
        """The episodes that ended since the last call."""

    def close(self) -> None:
        """Close the environments."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Returns and lengths of whole episodes, in the order of their seeds."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]
    info: tuple[Mapping[str, float], ...] = ()
    """Of each episode the means of the numbers in `info`, if the environment gives any."""

    @property
    def mean(self) -> float:
        """Mean return."""
        return float(np.mean(self.returns))

    @property
    def deviation(self) -> float:
        """Standard deviation of the returns."""
        return float(np.std(self.returns))


def evaluate(
    spec: PolicySpec,
    weights: Array,
    make_lanes: Callable[[Seeds, int], EvaluationLanes],
    episodes: int,
    seeds: Seeds,
    kernels: str = NUMPY,
) -> Evaluation:
    """Run the policy for a number of episodes: one per lane, so that short episodes are not overrepresented."""
    summaries: list[EpisodeSummary] = []
    batch = 0
    while len(summaries) < episodes:
        lanes = make_lanes(Seeds(seeds.integer("evaluation", batch)), min(_MAX_LANES, episodes - len(summaries)))
        try:
            policy = run_policy(spec, weights, kernels)
            summaries += _first_episodes(policy, lanes, seeds.integer("decisions", batch))
        finally:
            lanes.close()
        batch += 1
    info = tuple(s.info for s in summaries) if any(s.info for s in summaries) else ()
    return Evaluation(tuple(s.return_ for s in summaries), tuple(s.length for s in summaries), info)


def _first_episodes(policy: RunningPolicy, lanes: EvaluationLanes, seed: int) -> list[EpisodeSummary]:
    streams = [StreamKey("evaluation", "agent", lane) for lane in range(lanes.count)]
    noise = KeyedNoise(seed, streams, policy.noise_size)
    observation, carry = lanes.reset(), policy.initial_carry(lanes.count)
    first: dict[int, EpisodeSummary] = {}
    decisions = 0
    while len(first) < lanes.count:
        if decisions == _MAX_STEPS:
            raise EndlessEpisode(
                f"An evaluation episode did not end within {_MAX_STEPS:,} steps. Give the environment a time limit: "
                f"environment.max_episode_steps=1000, for example."
            )
        decision = policy.act(observation, noise.at(decisions), carry)
        decisions += 1
        carry = {name: memory.copy() for name, memory in decision.carry.items()}
        step = lanes.step(decision.action)
        observation = step.observation
        for lane in step.final_observation:
            for memory in carry.values():
                memory[lane] = 0.0
        for summary in lanes.episodes():
            first.setdefault(summary.lane, summary)
    return [first[lane] for lane in range(lanes.count)]

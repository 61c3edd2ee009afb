"""How good a policy is: whole episodes in environments of its own, doing its best."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rl4sys.environments import EpisodeSummary, Step
from rl4sys.experience import Array, Arrays, StreamKey
from rl4sys.policy import KeyedNoise, NumpyPolicy, PolicySpec
from rl4sys.seeding import Seeds

_MOST_LANES = 16
_MOST_STEPS = 100_000


class EndlessEpisode(RuntimeError):
    """An evaluation waits for the end of an episode that does not come."""


class EvaluationLanes(Protocol):
    """Fresh environments to evaluate in."""

    @property
    def count(self) -> int:
        """How many lanes there are."""

    def reset(self) -> Arrays:
        """Start an episode in every lane."""

    def step(self, action: Array) -> Step:
        """Act once in every lane."""

    def episodes(self) -> list[EpisodeSummary]:
        """The episodes that ended since the last call."""

    def close(self) -> None:
        """Free what the lanes hold."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Returns and lengths of whole episodes, in the order of their seeds."""

    returns: tuple[float, ...]
    lengths: tuple[int, ...]

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
) -> Evaluation:
    """Run the policy for a number of episodes: one per lane, so that short ones are not counted more often."""
    summaries: list[EpisodeSummary] = []
    wave = 0
    while len(summaries) < episodes:
        lanes = make_lanes(Seeds(seeds.integer("evaluation", wave)), min(_MOST_LANES, episodes - len(summaries)))
        try:
            summaries += _first_episodes(NumpyPolicy(spec, weights), lanes, seeds.integer("decisions", wave))
        finally:
            lanes.close()
        wave += 1
    return Evaluation(tuple(s.return_ for s in summaries), tuple(s.length for s in summaries))


def _first_episodes(policy: NumpyPolicy, lanes: EvaluationLanes, seed: int) -> list[EpisodeSummary]:
    streams = [StreamKey("evaluation", "agent", lane) for lane in range(lanes.count)]
    noise = KeyedNoise(seed, streams, policy.noise_size)
    observation, carry = lanes.reset(), policy.initial_carry(lanes.count)
    first: dict[int, EpisodeSummary] = {}
    decisions = 0
    while len(first) < lanes.count:
        if decisions == _MOST_STEPS:
            raise EndlessEpisode(
                f"An evaluation episode did not end within {_MOST_STEPS:,} steps. Give the environment a time limit: "
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

"""All rules, and a trained policy, with the same simulated requests."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.environments.balancing.balancing_guard import BalancingGuard
from rl4sys.environments.balancing.environment import NAME
from rl4sys.environments.balancing.requests import Request, arrivals, speeds
from rl4sys.environments.balancing.rules import BASELINE, RULES, Rule
from rl4sys.environments.balancing.simulation import Latencies, simulate
from rl4sys.experiments.policies.acting_policy import ActingPolicy
from rl4sys.experiments.policies.trained_policy import find_policy

from .choosers import guarded_rule
from .switchback import Block, within

LEARNED = "learned"
"""The trained policy, which exploits; nothing is recorded meanwhile."""
_SAMPLE = 5_000
"""Latencies that are kept for the plot."""


class UnsuitablePolicy(ValueError):
    """Not a policy for this task."""


@dataclass(frozen=True, slots=True)
class SimulatedRule:
    """How a rule did over some seeds."""

    rule: str
    mean: float
    """Seconds, the mean over seeds."""
    p99: float
    mean_ratio: float
    """Relative to the baseline with the same requests; geometric means over seeds."""
    p99_ratio: float
    worst_p99_ratio: float
    """Of any seed."""
    sample: Sequence[float]
    """Some latencies, for a plot."""

    def json_values(self) -> dict[str, Any]:
        """The result for scripts, without the sample."""
        return {name: value for name, value in asdict(self).items() if name != "sample"}


def simulate_all(policy: Path | None, rate: float, seconds: float, seeds: int, *, chaos: bool) -> list[SimulatedRule]:
    """Simulate every rule, and the policy of a run if there is one, with each seed."""
    makers = {name: (lambda seed, make=make: make(random.Random(seed))) for name, make in RULES.items()}
    if policy is not None:
        choose = learned_rule(policy)
        makers[LEARNED] = lambda seed: choose
    found = {
        name: [
            simulate(speeds(chaos=chaos), arrivals(rate, np.random.default_rng(1_000 + seed)), make(seed), seconds)
            for seed in range(seeds)
        ]
        for name, make in makers.items()
    }
    return [_result(name, results, found[BASELINE]) for name, results in found.items()]


def learned_rule(policy: Path) -> Rule:
    """The policy of a run as a rule, behind the guard; exploits."""
    try:
        found = find_policy(policy)
    except (OSError, ValueError) as error:
        raise UnsuitablePolicy(f"{policy} has no policy to simulate: {error}") from error
    if found.environment is None or found.environment.name != NAME:
        raise UnsuitablePolicy(f"{policy} is not a policy of {NAME}; train one with configs in this directory.")
    acting = ActingPolicy(found.policy.exploit, found.policy.weights, found.environment)
    return guarded_rule(acting.act, BalancingGuard(), RULES[BASELINE](random.Random(0)))


def simulated_baseline(blocks: Sequence[Block], began: float, rate: float, seed: int, *, chaos: bool) -> Latencies:
    """The baseline in blocks of a live run with the same requests, of which the first arrives after `began`.

    Times are seconds since the first period of the disturbance. The beginning of each block is cut as in the live
    comparison. The baseline decides between the blocks, too.
    """
    requests = (Request(began + at, kind) for at, kind in arrivals(rate, np.random.default_rng(seed)))
    rule = RULES[BASELINE](random.Random(seed))
    found = simulate(speeds(chaos=chaos), requests, rule, max(block.end for block in blocks), burn_in=0.0)
    inside = np.any([within(block, found.at) for block in blocks], axis=0)
    return Latencies(found.at[inside], found.seconds[inside])


def _result(name: str, results: Sequence[Latencies], base: Sequence[Latencies]) -> SimulatedRule:
    p99 = np.array([each.quantile(0.99) for each in results])
    ratios = p99 / [each.quantile(0.99) for each in base]
    means = np.array([each.mean for each in results])
    relative = means / [each.mean for each in base]
    sample = np.concatenate([each.seconds for each in results])
    picked = np.random.default_rng(0).choice(sample, min(_SAMPLE, len(sample)), replace=False)
    geometric = (float(np.exp(np.log(each).mean())) for each in (relative, ratios))
    return SimulatedRule(name, float(means.mean()), float(p99.mean()), *geometric, float(ratios.max()), picked.tolist())

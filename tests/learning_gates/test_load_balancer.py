"""Learning gates of the load balancer: simulated requests, relative to least connections."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest

from rl4sys.environments.balancing import (
    BASELINE,
    RATE,
    RULES,
    BackendView,
    BalancingGuard,
    Rule,
    arrivals,
    context,
    rows,
    simulate,
    speeds,
)
from rl4sys.environments.balancing.environment import LoadBalancing
from rl4sys.experiments import Run, load_experiment

SEEDS = (1, 2, 3, 4, 5)
SECONDS = 300.0
LIVE = {
    # The settings of the live balancer.
    "algorithm.lr": 1e-3,
    "algorithm.anneal_lr": False,
    "algorithm.epochs": 4,
    "algorithm.minibatch_size": 256,
    "algorithm.imitate": {"decisions": 3_000},
    "environment.incumbent": "incumbents:fewest_in_flight",
    "environment.num_envs": 1,
    "buffer.size": 2_048,
}


class ObservedBalancing(LoadBalancing):
    """The environment, which keeps the latency of every request."""

    seconds: ClassVar[list[float]] = []

    def step(self, action: np.int64) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Send the present request to a backend."""
        result = super().step(action)
        self.seconds.append(result[-1]["latency"])
        return result


def learned(seed: int, directory: Path) -> Rule:
    """A trained policy behind the guard."""
    overrides = {"seed": seed, "directory": str(directory), "threads": 1, "logging.tensorboard": False}
    run = Run.create(load_experiment("ppo_load_balancing.yaml", overrides | {"training.eval_frequency": 0}))
    run.train()
    policy, guard, safe = run.policy(), BalancingGuard(), RULES[BASELINE](random.Random(seed))

    def choose(views: list[BackendView], kind: int, now: float) -> int:
        if guard.steps_in(views, now):
            return safe(views, kind, now)
        return int(policy.act({"candidates": rows(views, kind, now), "context": context(kind)}))

    return choose


def ratios(rule: Rule, seed: int, *, chaos: bool) -> tuple[float, float]:
    """Mean and p99 of a rule, relative to least connections with the same requests."""
    both = [
        simulate(speeds(chaos=chaos), arrivals(RATE, np.random.default_rng(seed)), each, SECONDS)
        for each in (rule, RULES[BASELINE](random.Random(seed)))
    ]
    return both[0].mean / both[1].mean, both[0].quantile(0.99) / both[1].quantile(0.99)


def first_five_minutes(seed: int, directory: Path) -> tuple[float, float]:
    """Mean and p99 of a service that learns from its first request on, relative to least connections."""
    ObservedBalancing.seconds.clear()
    requests = int(RATE * SECONDS)
    task = {"environment.name": "ObservedBalancing-v0", "environment.kwargs": {"requests": requests}}
    training = {"training.total_timesteps": requests, "training.eval_frequency": 0, "training.num_eval_episodes": 1}
    general = {"seed": seed, "directory": str(directory), "threads": 1, "logging.tensorboard": False}
    with Run.create(load_experiment("ppo_load_balancing.yaml", LIVE | task | training | general)) as run:
        while run.steps < requests:
            run.step()
    ours = np.array(ObservedBalancing.seconds[:requests])
    arriving = arrivals(RATE, np.random.default_rng(seed))
    theirs = simulate(speeds(chaos=False), arriving, RULES[BASELINE](random.Random(seed)), SECONDS)
    found = float(ours.mean() / theirs.mean), float(np.quantile(ours, 0.99) / theirs.quantile(0.99))
    print(f"\nfirst minutes, seed {seed}: mean {found[0]:.2f}, p99 {found[1]:.2f} of least connections", flush=True)
    return found


@pytest.mark.learning
@pytest.mark.timeout(3600)
def test_the_first_minutes_of_learning_cost_little_after_imitating_least_connections(tmp_path: Path) -> None:
    gymnasium.register("ObservedBalancing-v0", ObservedBalancing, disable_env_checker=True)
    assert max(first_five_minutes(seed, tmp_path)[0] for seed in SEEDS) <= 1.15


@pytest.mark.learning
@pytest.mark.timeout(3600)
def test_a_learned_balancer_is_faster_than_least_connections(tmp_path: Path) -> None:
    rules = {seed: learned(seed, tmp_path) for seed in SEEDS}
    steady = {seed: ratios(rule, 100 + seed, chaos=False) for seed, rule in rules.items()}
    chaos = {seed: ratios(rule, 100 + seed, chaos=True) for seed, rule in rules.items()}
    for name, found in (("steady", steady), ("chaos", chaos)):
        shown = {seed: f"mean {mean:.2f}, p99 {p99:.2f}" for seed, (mean, p99) in found.items()}
        print(f"\n{name}, relative to least connections: {shown}")
    assert all(mean <= 1.0 and p99 <= 1.0 for mean, p99 in steady.values())
    assert np.exp(np.mean(np.log([p99 for _, p99 in chaos.values()]))) <= 0.85
    assert all(p99 <= 1.1 for _, p99 in chaos.values())

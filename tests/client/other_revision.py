"""A system that uses what clients of two revisions share; prints the health of each of its agents as a line of JSON.

Run with the sources of either revision: `python other_revision.py PORT`.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import rl4sys

LIMIT = 150.0
"""Seconds to wait for a version; a busy machine starts learners slowly."""
VERSIONS = 2
REPORTED = ("version", "decisions", "acknowledged", "incumbent_decisions", "bad_inputs", "stopped")

rng = np.random.default_rng(0)


def run(name: str, server: str, settings: Mapping[str, Any], episode: Callable[[Any, Any], None]) -> None:
    """Decide until the learner has published some versions."""
    with rl4sys.connect({"client_id": name, "server": server, "timeout": 60, **settings}) as agent:
        deadline = time.monotonic() + LIMIT
        while (agent.health().version or 0) < VERSIONS and time.monotonic() < deadline:
            with agent.episode() as opened:
                episode(agent, opened)
        agent.flush(30.0)
        health = agent.health()
    values = {each: getattr(health, each) for each in REPORTED} | {"drops": dict(health.drops)}
    print(json.dumps({"agent": name, **values}), flush=True)


def vectors(steps: int) -> Callable[[Any, Any], None]:
    """Episodes of so many plain decisions."""

    def episode(_: Any, opened: Any) -> None:
        for _ in range(steps):
            opened.reward(float(opened.act(rng.standard_normal(4).astype(np.float32))))
        opened.end(np.zeros(4, np.float32), rl4sys.Ending.TERMINATED)

    return episode


def candidates(agent: Any, opened: Any) -> None:
    """Few of many possible rows, which compress well; the system decides by itself until there is a version."""
    for second in range(40):
        rows = rng.standard_normal((int(rng.integers(1, 20)), 8)).astype(np.float32)
        observation = {"candidates": rows, "context": np.zeros(3, np.float32)}
        if agent.health().version:
            opened.act(observation, now=float(second))
        else:
            opened.took(observation, int(rows[:, 0].argmax()), now=float(second))
        opened.reward(1.0, opened.decision, final=True)
    last = {"candidates": np.zeros((1, 8), np.float32), "context": np.zeros(3, np.float32)}
    opened.end(last, rl4sys.Ending.TRUNCATED, now=40.0)


def main(server: str) -> None:
    """One agent for each kind of work."""
    plain = {"algorithm": {"name": "ppo"}, "buffer": {"size": 256}, "observation": 4, "action": 2}
    run("long", server, plain, vectors(50))
    run("short", server, plain, vectors(1))
    run("shared", server, {**plain, "policy_id": "both"}, vectors(50))
    run("exploits", server, {**plain, "policy_id": "both", "mode": "exploit"}, vectors(5))
    rows = {"candidates": [128, 8], "observation": {"context": 3}, "reward_timeout": "10s", "buffer": {"size": 256}}
    actor = {"actor": {"type": "candidates", "hidden_dims": [16]}}
    algorithm = {"name": "ppo", "horizon": "30s", "imitate": {"decisions": 200}}
    run("candidates", server, {**rows, "network": actor, "algorithm": algorithm}, candidates)


if __name__ == "__main__":
    main(sys.argv[1])

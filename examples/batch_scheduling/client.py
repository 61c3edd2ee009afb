"""A batch system that learns live: schedules sequences of jobs by a policy that a training server improves.

Started by `python -m examples.batch_scheduling live`, twice: both clients share one policy. Prints lines of JSON.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

import rl4sys
from rl4sys.environments.scheduling import BatchScheduling, measure, schedule_by
from rl4sys.environments.scheduling.features import CONTEXT, ROW

_ALGORITHM = {
    "name": "ppo",
    "lr": 1e-3,
    "gamma": 1.0,
    "gae_lambda": 0.97,
    "epochs": 4,
    "minibatch_size": 512,
    "anneal_lr": False,
    "target_kl": 0.03,
}


_LONGEST_WAIT = 30.0
"""Seconds to wait for a version; without a server the clusters continue."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence of jobs that has been scheduled."""

    slowdown: float
    sjf: float
    """The slowdown of the same jobs by SJF."""
    guarded: int
    """Decisions that the guard took or restricted."""


class Cluster:
    """One simulated machine, which schedules sequence after sequence; all clusters of a client share the agent."""

    def __init__(self, agent: rl4sys.Agent, environment: BatchScheduling, seed: int) -> None:
        self._agent, self._environment = agent, environment
        self._observation, _ = environment.reset(seed=seed)
        self._episode = agent.episode()

    def step(self) -> Sequence | None:
        """One decision; at the end of a sequence, what came of it."""
        action = self._episode.act(self._observation)
        self._observation, reward, over, _, info = self._environment.step(action)
        self._episode.reward(reward)
        if not over:
            return None
        self._episode.end(self._observation, rl4sys.Ending.TERMINATED)
        jobs, protocol = self._environment.episode.jobs, self._environment.rules.protocol
        sjf = measure(schedule_by("sjf", jobs, protocol)).slowdown
        self._observation, _ = self._environment.reset()
        self._episode = self._agent.episode()
        return Sequence(float(info["slowdown"]), sjf, int(info["guarded"]))


def client_settings(server: str, name: str, most: int, buffer: int) -> dict[str, object]:
    """The settings of one client; both name the same policy."""
    return {
        "client_id": name,
        "policy_id": "batch-scheduler",
        "server": server,
        "candidates": [most, len(ROW)],
        "observation": {"context": len(CONTEXT)},
        "algorithm": _ALGORITHM,
        "network": {"actor": {"type": "candidates", "hidden_dims": [32, 16], "activation": "relu"}},
        "buffer": {"size": buffer},
        "reward_window": 0,
        "max_segment_length": 64,
        "timeout": 90.0,
    }


class Pace:
    """Lets a client wait for the learner: it simulates far faster than a real batch system decides."""

    def __init__(self, agent: rl4sys.Agent, lag: int) -> None:
        """`lag`: decisions after which a new version is waited for."""
        self._agent, self._lag = agent, lag
        self._version, self._decisions = agent.health().version, 0

    def keep(self) -> None:
        """Call it after every decision."""
        self._decisions += 1
        if self._decisions < self._lag:
            return
        deadline = time.monotonic() + _LONGEST_WAIT
        while self._agent.health().version == self._version and time.monotonic() < deadline:
            time.sleep(0.01)
        self._version, self._decisions = self._agent.health().version, 0


def main() -> None:
    """Connect, and schedule until enough decisions are made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--decisions", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--clusters", type=int, default=4)
    parser.add_argument("--buffer", type=int, required=True)
    parser.add_argument("--environment", type=json.loads, required=True, help="arguments of BatchScheduling, as JSON")
    asked = parser.parse_args()
    environments = [BatchScheduling(**asked.environment) for _ in range(asked.clusters)]
    settings = client_settings(asked.server, asked.name, environments[0].rules.most, asked.buffer)
    with rl4sys.connect(settings) as agent:
        clusters = [Cluster(agent, each, 1000 * asked.seed + place) for place, each in enumerate(environments)]
        pace = Pace(agent, asked.buffer)
        for decision in range(1, asked.decisions + 1):
            pace.keep()
            done = clusters[decision % len(clusters)].step()
            if done is not None or decision == asked.decisions:
                sequence = None if done is None else asdict(done)
                version = agent.health().version
                print(json.dumps({"decisions": decision, "version": version, "sequence": sequence}), flush=True)
        agent.flush(timeout=20.0)


if __name__ == "__main__":
    main()

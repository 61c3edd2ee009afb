"""The client of the demo: flies several simulators at once and prints its measurements as lines of JSON.

It needs no torch. All that makes it a client is `rl4sys.connect`, `episode.act`, `episode.reward` and `episode.end`;
the rest runs the simulator and takes measurements.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from evaluation import fly_greedily
from metering import MeteredTransport

import rl4sys
from rl4sys.client import Agent, load_settings
from rl4sys.client.connection import transport_for
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

HERE = Path(__file__).parent
_REPORT_SECONDS = 0.5
_STATUS_SECONDS = 2.0
_CLOCK_EVERY = 8
"""Rounds between two readings of the clock."""


class Lander:
    """One simulator, flown episode after episode; all share the agent."""

    def __init__(self, agent: Agent, seed: int) -> None:
        self._agent = agent
        self._environment = gymnasium.make("LunarLander-v3", disable_env_checker=True)
        self._observation, _ = self._environment.reset(seed=seed)
        self._episode = agent.episode()
        self._total = 0.0

    def step(self, latency: list[int]) -> float | None:
        """Take one step; gives the return when the episode has ended."""
        began = time.perf_counter_ns()
        action = self._episode.act(self._observation)
        latency.append(time.perf_counter_ns() - began)
        self._observation, reward, terminated, truncated, _ = self._environment.step(action)
        self._episode.reward(float(reward))
        self._total += float(reward)
        if not (terminated or truncated):
            return None
        self._episode.end(self._observation, rl4sys.Ending.TERMINATED if terminated else rl4sys.Ending.TRUNCATED)
        total, self._total = self._total, 0.0
        self._observation, _ = self._environment.reset()
        self._episode = self._agent.episode()
        return total


class Flight:
    """Flies until enough steps are taken or the time is up, and reports regularly."""

    def __init__(self, agent: Agent, meter: MeteredTransport, lanes: int, seed: int) -> None:
        self._agent = agent
        self._meter = meter
        self._landers = [Lander(agent, seed + number) for number in range(lanes)]
        self._latency: list[int] = []
        self._all_latency: list[np.ndarray] = []
        self._pace: dict[str, Any] = {}
        self._returns: list[tuple[int, float]] = []
        self._steps = 0
        self._began = time.monotonic()
        self._reported = (self._began, 0)
        self._server: dict[str, Any] = {}
        self._asked = 0.0

    def run(self, steps: int, seconds: float) -> None:
        """Act in all simulators in turn."""
        rounds = 0
        while self._steps < steps:
            for lander in self._landers:
                total = lander.step(self._latency)
                self._steps += 1
                if total is not None:
                    self._returns.append((self._steps, round(total, 2)))
            rounds += 1
            if rounds % _CLOCK_EVERY == 0:
                now = time.monotonic()
                if now - self._began > seconds:
                    break
                if now - self._reported[0] >= _REPORT_SECONDS:
                    self.report()
        self.report()

    def report(self, *, refresh: bool = False) -> None:
        """Print the measurements since the last report; without new steps, the latest speed and latency."""
        now = time.monotonic()
        before, steps = self._reported
        self._reported = now, self._steps
        if self._latency:
            latest = np.array(self._latency)
            self._all_latency.append(latest)
            self._latency.clear()
            self._pace = {"latency": percentiles(latest), "speed": (self._steps - steps) / (now - before)}
        health = self._agent.health()
        send(
            "flight",
            steps=self._steps,
            seconds=now - self._began,
            returns=self._returns,
            **self._pace,
            version=health.version,
            versions=self._meter.versions,
            sent=self._meter.sent,
            received=self._meter.received,
            waiting=health.backlog,
            drops=sum(health.drops.values()),
            connected=health.connected,
            memory=resident_bytes(),
            server=self._server_state(now, ask=refresh or now - self._asked >= _STATUS_SECONDS),
        )
        self._returns = []

    def catch_up(self, seconds: float) -> None:
        """Wait until the server has learned from everything and its newest policy has arrived."""
        deadline = time.monotonic() + seconds
        while True:
            self.report(refresh=True)
            is_done = self._server.get("queued") == 0 and self._server.get("version") == self._agent.health().version
            if is_done or time.monotonic() > deadline:
                return
            time.sleep(_REPORT_SECONDS)

    def latency(self) -> dict[str, float]:
        """Latency of all decisions."""
        return percentiles(np.concatenate(self._all_latency))

    def _server_state(self, now: float, *, ask: bool) -> dict[str, Any]:
        """The status of our learner on the server: a new one if `ask`, otherwise the latest."""
        if ask:
            self._asked = now
            try:
                reply = self._meter.status(status_pb2.StatusRequest(), timeout=1.0)
            except CallFailed as error:
                return {"state": f"away: {error}"}
            self._server = {"state": _word(status_pb2.ServerState.Name(reply.server.state))}
            for learner in reply.learners:
                self._server |= {
                    "learner": _word(status_pb2.LearnerState.Name(learner.state)),
                    "learned": learner.learned_steps,
                    "unused": sum(learner.unused_steps.values()),
                    "queued": learner.queued_segments,
                    "version": learner.version,
                    "memory": reply.server.memory_bytes,
                }
        return self._server


def send(kind: str, **values: Any) -> None:
    """Print one message for the process that started this one."""
    print(json.dumps({"kind": kind, **values}), flush=True)


def percentiles(nanoseconds: np.ndarray) -> dict[str, float]:
    """Median and 99th percentile in microseconds."""
    median, p99 = np.percentile(nanoseconds, [50, 99]) / 1000
    return {"median": float(median), "p99": float(p99)}


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _word(name: str) -> str:
    """`SERVER_STATE_SERVING` as the word "serving"."""
    return name.split("_STATE_", 1)[1].lower()


def main() -> None:
    """Connect, fly, evaluate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--policy", type=Path, required=True, help="directory to keep the newest policy in")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--lanes", type=int, default=16)
    parser.add_argument("--episodes", type=int, default=20, help="of the evaluation")
    parser.add_argument("--config", type=Path, default=HERE / "client.yaml")
    given = parser.parse_args()
    settings = dataclasses.replace(load_settings(given.config), server=given.server, cache=given.policy, timeout=90.0)
    meter = MeteredTransport(transport_for(settings))
    try:
        with rl4sys.connect(settings, transport=meter) as agent:
            flight = Flight(agent, meter, given.lanes, settings.seed or 0)
            flight.run(given.steps, given.seconds)
            flushed = agent.flush(timeout=20.0)
            flight.catch_up(seconds=30.0)
        health = agent.health()
        found = {"latency": flight.latency(), "acknowledged": health.acknowledged, "runtime": health.runtime}
        send("flown", flushed=flushed, **found)
    finally:
        meter.close()
    returns = fly_greedily(given.policy / f"{settings.client_id}.policy", given.episodes)
    send("evaluated", returns=returns)


if __name__ == "__main__":
    main()

"""Many episodes at once: batched decisions, and an episode for each request.

Run `python benchmarks/episodes.py`. A client in this process, a real server in another, PPO with its default settings
(64×64); 8 numbers are observed, 4 choices. All comparisons alternate within this run. Times are CPU time, so that other
processes of a loaded machine disturb them less.

- batch: microseconds of a decision by `agent.act_many`, in the thread that acts, as a share of `episode.act` for the
  same episodes one by one;
- memory: resident bytes of a one-step episode that has acted and is open, with 10,000 of them open;
- one step: microseconds of an episode with one step (open, act, reward, end), with encoding and sending, with 10,000 of
  them open at once, as a share of those that are opened and ended one after the other.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable
from pathlib import Path
from time import process_time, thread_time

import numpy as np

import rl4sys
from rl4sys.client import Agent
from serving import serving

OPEN = 10_000
ROUNDS = 9
SETTINGS = {"client_id": "episodes", "algorithm": "PPO", "observation": 8, "action": 4, "timeout": 90.0}
ROW = np.zeros(8, np.float32)


def seconds(work: Callable[[], object], clock: Callable[[], float]) -> float:
    begin = clock()
    work()
    return clock() - begin


def resident() -> int:
    """Bytes of this process in memory."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.findall(r"VmRSS:\s+(\d+)", status)[0])


def batch(agent: Agent, count: int) -> None:
    episodes = [agent.episode() for _ in range(count)]
    rows = np.random.default_rng(0).standard_normal((count, 8)).astype(np.float32)
    repeats = 4096 // count

    def together() -> None:
        for _ in range(repeats):
            agent.act_many(episodes, rows)

    def apart() -> None:
        for _ in range(repeats):
            for episode, row in zip(episodes, rows, strict=True):
                episode.act(row)

    together()
    apart()
    times = np.array([(seconds(together, thread_time), seconds(apart, thread_time)) for _ in range(ROUNDS)]) / (
        repeats * count
    )
    many, single = np.median(times, axis=0) * 1e6
    ratio = np.median(times[:, 0] / times[:, 1])
    print(f"batch of {count:4d}: {many:6.2f} µs a decision, one by one {single:6.2f} µs, ratio {ratio:.2f}")
    for episode in episodes:
        episode.end(ROW)


def all_open(agent: Agent) -> int:
    """Open all, act in all, end all; returns the bytes that they took when they were open."""
    before = resident()
    episodes = [agent.episode() for _ in range(OPEN)]
    for episode in episodes:
        episode.act(ROW)
        episode.reward(1.0)
    taken = resident() - before
    for episode in episodes:
        episode.end(ROW)
    return taken


def one_by_one(agent: Agent) -> None:
    for _ in range(OPEN):
        episode = agent.episode()
        episode.act(ROW)
        episode.reward(1.0)
        episode.end(ROW)


def sent(agent: Agent, run: Callable[[Agent], object]) -> None:
    """Run it and send what it recorded."""
    run(agent)
    agent.flush(60.0)


def one_step(agent: Agent) -> None:
    taken = all_open(agent)
    print(f"memory: {taken / OPEN:.0f} bytes for each of {OPEN} open episodes")
    times = []
    for _ in range(ROUNDS):
        gc.collect()
        times.append(
            (
                seconds(lambda: sent(agent, all_open), process_time),
                seconds(lambda: sent(agent, one_by_one), process_time),
            )
        )
    many, single = np.median(times, axis=0) / OPEN * 1e6
    ratio = np.median([first / second for first, second in times])
    print(f"one step: {many:.0f} µs with {OPEN} open, {single:.0f} µs one after the other, ratio {ratio:.2f}")
    health = agent.health()
    print(
        f"segments: {health.acknowledged} acknowledged, {health.thinned_episodes} thinned, drops {dict(health.drops)}"
    )


def main() -> None:
    with serving() as server, rl4sys.connect(SETTINGS | {"server": server.address}) as agent:
        one_step(agent)
        for count in (4, 16, 64, 256):
            batch(agent, count)


if __name__ == "__main__":
    main()

"""What the client costs the system that it lives in: time per decision, and bytes per step.

Run `python benchmarks/client.py`; times are microseconds of `episode.act` on 8→64→64→4, recording included: with a
server in the same process that answers (so its work is paid for here too), with one that hangs, with ever new
weights, and with a decision every millisecond.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.client.fake_server import FakeServer, small_policy, some_weights

from rl4sys.client import Agent, connect
from rl4sys.wire import to_ranges
from rl4sys.wire.generated import training_pb2

Times = dict[str, float]
EPISODE = 200


class Server(FakeServer):
    """Acknowledges without looking, so that little of its work is measured; counts bytes."""

    def __init__(self) -> None:
        super().__init__(small_policy(hidden=64))
        self.bytes = 0
        self.hung = threading.Event()
        self.healed = threading.Event()

    def push(self, request, timeout):  # type: ignore[no-untyped-def]
        if self.hung.is_set():
            self.healed.wait()
        self.bytes += request.ByteSize()
        return training_pb2.PushReply(acknowledged=to_ranges(s.sequence for s in request.segments))


def decisions(agent: Agent, count: int, pause: float = 0.0) -> Iterator[int]:
    """Nanoseconds of each decision."""
    rng = np.random.default_rng(0)
    observations = rng.standard_normal((EPISODE + 1, 8)).astype(np.float32)
    episode = agent.episode()
    for number in range(count):
        step = number % EPISODE
        begin = perf_counter_ns()
        episode.act(observations[step])
        yield perf_counter_ns() - begin
        episode.reward(1.0)
        if step == EPISODE - 1:
            episode.end(observations[EPISODE])
            episode = agent.episode()
        if pause:
            time.sleep(pause)
    episode.end(observations[0])


def summary(times: Iterator[int]) -> Times:
    """The first tenth warms up."""
    all_times = np.fromiter(times, np.int64) / 1000
    steady = all_times[len(all_times) // 10 :]
    return {"median": float(np.median(steady)), "p99": float(np.percentile(steady, 99)), "max": float(steady.max())}


def measure(count: int) -> dict[str, Times]:
    server = Server()
    settings = {"client_id": "benchmark", "observation": 8, "action": 4, "seed": 0}
    results: dict[str, Times] = {}
    with connect(settings, transport=server) as agent:
        results["answering"] = summary(decisions(agent, count))
        agent.flush()
        results["wire"] = {"bytes per step": server.bytes / agent.health().decisions}
        server.hung.set()
        results["hung"] = summary(decisions(agent, count))
        server.hung.clear()
        server.healed.set()
        results["answering, again"] = summary(decisions(agent, count))
        publishing = threading.Event()

        def publish() -> None:
            for seed in range(10_000):
                if publishing.wait(0.05):
                    return
                server.publish(some_weights(server.spec, seed))

        publisher = threading.Thread(target=publish)
        publisher.start()
        results["20 versions a second"] = summary(decisions(agent, count))
        publishing.set()
        publisher.join()
        results["one each millisecond"] = summary(decisions(agent, min(count, 3_000), pause=0.001))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=20_000)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    results = measure(options.repeats)
    if options.json:
        print(json.dumps(results, indent=2))
        return
    print(f"bytes per LunarLander-like step: {results.pop('wire')['bytes per step']:.1f} (target 60)")
    print(f"{'':24}{'median µs':>12}{'p99 µs':>12}{'max µs':>12}")
    for name, times in results.items():
        print(f"{name:24}{times['median']:12.1f}{times['p99']:12.1f}{times['max']:12.1f}")
    normal = min(results["answering"]["p99"], results["answering, again"]["p99"])
    print(f"p99 with the server hung / normal p99: {results['hung']['p99'] / normal:.2f} (target 1.2)")
    print("target: median ≤ 30 µs")


if __name__ == "__main__":
    main()

"""The kill switch with 200 clients: how soon they obey an order of an operator, and whether a decision ever waits.

Run `python benchmarks/control.py`. A real server, and 200 agents of one learner with a gRPC connection each, in
processes of 50, all on this machine. Every agent decides a hundred times a second or more, as far as the machine
allows, while the orders `off` and `follow` alternate.

- obeyed: milliseconds from before the operator's call until the first decision of each client that obeys it, so the
  pause between two decisions counts, too;
- stored: milliseconds of the operator's call, in which the server stores the order on disk before it sends it;
- pause: milliseconds between two decisions of a client, which a loaded machine makes longer;
- decision: microseconds of `episode.act` meanwhile, wall-clock: where processes outnumber cores, that includes the time
  in which another process runs.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

import numpy as np

import rl4sys
from rl4sys.client import Agent
from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.client.operations_calls import OperationsCalls
from rl4sys.client.settings import load_settings
from rl4sys.wire.generated import operations_pb2
from serving import serving

EACH = 50
ROW = np.zeros(8, np.float32)
SETTINGS = {"policy_id": "control", "algorithm": "PPO", "observation": 8, "action": 4, "timeout": 120.0}


class Follower:
    """One client, which notes when it changes who decides."""

    def __init__(self, address: str, name: str) -> None:
        self.by_fallback = False
        self.changes: list[tuple[float, bool]] = []
        self._fell_back = False
        settings = SETTINGS | {"client_id": name, "server": address}
        self.agent: Agent = rl4sys.connect(settings, fallback=self._fallback)
        self._episode = self.agent.episode()

    def _fallback(self, observation: Any) -> int:
        self._fell_back = True
        return 0

    def decide(self) -> int:
        """Decide once; returns the nanoseconds that it took."""
        self._fell_back = False
        begin = perf_counter_ns()
        self._episode.act(ROW)
        taken = perf_counter_ns() - begin
        if self._fell_back != self.by_fallback:
            self.by_fallback = self._fell_back
            self.changes.append((time.monotonic(), self.by_fallback))
        return taken


def follow(address: str, first: int) -> None:
    """A process with some of the clients; ends when its input does, and prints what it saw."""
    logging.getLogger("rl4sys").setLevel(logging.ERROR)
    followers = [Follower(address, f"control-{number}") for number in range(first, first + EACH)]
    print(json.dumps(followers[0].agent.health().learner), flush=True)
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    times: list[int] = []
    began: list[int] = []
    while not ended.wait(0.005):
        began.append(perf_counter_ns())
        times += [follower.decide() for follower in followers]
    slow = np.percentile(times, [50, 99, 99.9, 100]) / 1000
    pauses = np.percentile(np.diff(began), [50, 99, 100]) / 1e6
    seen = {"times": slow.tolist(), "pauses": pauses.tolist(), "decisions": len(times)}
    print(json.dumps(seen | {"changes": [follower.changes for follower in followers]}))
    for follower in followers:
        follower.agent.close(timeout=0.5)


@contextlib.contextmanager
def following(address: str, clients: int) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, __file__, "--follow", address, "--first"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen([*command, str(first)], **pipes) for first in range(0, clients, EACH)]
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


def measure(clients: int, orders: int) -> None:
    print(f"processes that want to run, before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with serving() as server, following(server.address, clients) as processes:
        (learner,) = {json.loads(process.stdout.readline()) for process in processes}  # type: ignore[union-attr]
        transport = GrpcTransport(load_settings({"client_id": "operator", "server": server.address}))
        operations = OperationsCalls(transport)
        ordered, stored = [], []
        for number in range(orders):
            time.sleep(2.0)
            mode = "CONTROL_MODE_FOLLOW" if number % 2 else "CONTROL_MODE_OFF"
            ordered.append(time.monotonic())
            operations.control(
                operations_pb2.ControlRequest(
                    learner=learner, mode=mode, reason="benchmark", operator_name="benchmark"
                ),
                10.0,
            )
            stored.append(1000 * (time.monotonic() - ordered[-1]))
        time.sleep(2.0)
        transport.close()
        found = [json.loads(process.communicate(timeout=120.0)[0]) for process in processes]
    report(found, ordered)
    print(f"stored: {', '.join(f'{value:.0f}' for value in stored)} ms")


def report(found: list[dict[str, Any]], ordered: list[float]) -> None:
    changes = [changes for process in found for changes in process["changes"]]
    obeyed = [[at - time_of for (at, _), time_of in zip(one, ordered, strict=False)] for one in changes]
    complete = sum(len(one) == len(ordered) for one in obeyed)
    print(f"clients that obeyed all {len(ordered)} orders: {complete} of {len(obeyed)}")
    milliseconds = 1000 * np.array([value for one in obeyed for value in one])
    p50, p99, most = np.percentile(milliseconds, [50, 99, 100])
    print(f"obeyed: median {p50:.0f} ms, p99 {p99:.0f} ms, max {most:.0f} ms (goal: p99 250 ms)")
    each = [
        np.percentile([1000 * one[order] for one in obeyed if order < len(one)], 99) for order in range(len(ordered))
    ]
    print(f"p99 of each order: {', '.join(f'{value:.0f}' for value in each)} ms")
    p50, p99, most = np.max([process["pauses"] for process in found], axis=0)
    print(f"pause: median {p50:.0f} ms, p99 {p99:.0f} ms, max {most:.0f} ms")
    p50, p99, p999, most = np.max([process["times"] for process in found], axis=0)
    count = sum(process["decisions"] for process in found)
    print(f"decision: median {p50:.0f} µs, p99 {p99:.0f} µs, p99.9 {p999:.0f} µs, max {most:.0f} µs of {count}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--orders", type=int, default=10)
    parser.add_argument("--follow", metavar="ADDRESS", help=argparse.SUPPRESS)
    parser.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.follow:
        follow(options.follow, options.first)
    else:
        measure(options.clients, options.orders)


if __name__ == "__main__":
    main()

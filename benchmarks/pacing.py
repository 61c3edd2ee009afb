"""How much of the experience that fast clients send is used by a PPO learner, with and without pacing.

Run `python benchmarks/pacing.py`. A real server, and 1 or 8 client processes that share one policy and decide as fast
as they can, without an environment: 8 observations, 4 actions, PPO with its default settings, all on this machine.
Episodes have 20 steps, 200, or 20,000 (which are thinned by spans). "All" is a client that ignores the share of
episodes that the server asks for, and records everything.

- used: the share of acknowledged steps that the learner used, of the whole run and of its second half;
- updates: how many the learner made: pacing must not starve it;
- recorded: the share of decisions that were recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import rl4sys
from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.client.settings import load_settings
from rl4sys.wire.generated import status_pb2
from serving import Serving, serving

POLICY = "fast"
EPISODES = (20, 200, 20_000)
ROWS = 1_024
NICENESS = 10
"""Of the clients, which have machines of their own where they are used: the learner must not wait for the processor."""


class Recording(GrpcTransport):
    """A transport of a client that records everything, whatever share the server asks for."""

    def join(self, request: Any, timeout: float) -> Any:
        return _without_share(super().join(request, timeout))

    def push(self, request: Any, timeout: float) -> Any:
        return _without_share(super().push(request, timeout))

    def report(self, request: Any, timeout: float) -> Any:
        return _without_share(super().report(request, timeout))

    def watch(self, request: Any) -> Any:
        return _Watching(super().watch(request))


class _Watching:
    def __init__(self, watching: Any) -> None:
        self._watching = watching

    def __iter__(self) -> Iterator[Any]:
        return map(_without_share, self._watching)

    def cancel(self) -> None:
        self._watching.cancel()


def _without_share(reply: Any) -> Any:
    reply.record_share = 0.0
    return reply


class Sample(NamedTuple):
    """What the server says about the learner."""

    stored: int
    used: int
    unused: int
    updates: int
    queued: int


def act(address: str, name: str, steps: int, seconds: float, *, is_paced: bool) -> None:
    """One client: decide for a while, then print how many decisions it made, and how many it did not record."""
    values = {"client_id": name, "policy_id": POLICY, "server": address, "algorithm": "PPO"}
    settings = load_settings({**values, "observation": 8, "action": 4, "timeout": 60.0})
    transport = (GrpcTransport if is_paced else Recording)(settings)
    rows = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
    best = rows[:, :4].argmax(1)
    os.nice(NICENESS)
    with rl4sys.connect(settings, transport=transport) as agent:
        decisions, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            with agent.episode() as episode:
                for _ in range(steps):
                    row = decisions % ROWS
                    episode.reward(float(episode.act(rows[row]) == best[row]))
                    decisions += 1
                    if not row and time.monotonic() > end:
                        break
                episode.end(rows[0], rl4sys.Ending.TRUNCATED)
        health = agent.health()
    transport.close()
    print(json.dumps([decisions, health.unrecorded_decisions]))


def sample(status: GrpcTransport) -> Sample | None:
    """The present sample; None before there is a learner."""
    learners = status.status(status_pb2.StatusRequest(), 30.0).learners
    if not learners:
        return None
    learner = learners[0]
    unused = sum(learner.unused_steps.values())
    return Sample(
        *(learner.stored_steps, learner.learned_steps, unused),
        *(learner.updates, learner.queued_segments),
    )


def measure(server: Serving, clients: int, steps: int, seconds: float, *, is_paced: bool) -> dict[str, Any]:
    """Run the clients against a new server; samples at the beginning, in the middle and after everything is folded."""
    status = GrpcTransport(load_settings({"client_id": "status", "server": server.address}))
    command = [sys.executable, __file__, "--act", server.address, str(steps), str(seconds), str(int(is_paced))]
    running = [
        subprocess.Popen([*command, f"client-{number}"], stdout=subprocess.PIPE, text=True) for number in range(clients)
    ]
    try:
        while (begin := sample(status)) is None or not begin.stored:
            time.sleep(0.2)
        time.sleep(seconds / 2)
        middle = sample(status)
        counts = np.array([json.loads(client.communicate()[0]) for client in running])
        while (end := sample(status)) is None or end.queued:
            time.sleep(0.2)
    finally:
        for client in running:
            client.kill()
            client.wait()
        status.close()
    assert middle is not None
    decisions, unrecorded = (int(number) for number in counts.sum(0))
    used, unused = end.used - middle.used, end.unused - middle.unused
    return {
        "used": end.used / end.stored,
        "used later": used / max(1, used + unused),
        "updates": end.updates,
        "recorded": 1 - unrecorded / decisions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each run")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8])
    parser.add_argument("--steps", type=int, nargs="*", default=EPISODES, help="of an episode")
    parser.add_argument("--act", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.act is not None:
        address, steps, seconds, is_paced, name = arguments.act
        act(address, name, int(steps), float(seconds), is_paced=bool(int(is_paced)))
        return
    print(f"{'clients':>7} {'episode':>8} {'records':>8} {'used':>7} {'2nd half':>8} {'updates':>8} {'recorded':>9}")
    for clients in arguments.clients:
        for steps in arguments.steps:
            for is_paced in (True, False):
                with serving() as server:
                    found = measure(server, clients, steps, arguments.seconds, is_paced=is_paced)
                print(
                    f"{clients:>7} {steps:>8,} {'share' if is_paced else 'all':>8} {found['used']:>7.1%} "
                    f"{found['used later']:>8.1%} {found['updates']:>8,} {found['recorded']:>9.1%}",
                    flush=True,
                )
    print("target: ≥ 90 % of what is sent is used, with 1 and with 8 fast clients")


if __name__ == "__main__":
    main()

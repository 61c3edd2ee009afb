"""A client that numbers its steps: `python -m … SETTINGS ACKNOWLEDGED FIRST PAUSE`.

The reward of its nth step is n · 2⁻²⁴, exactly, so that the log tells which experience it holds. Acknowledgements go to
a file before the client hears of them; every version that decides goes to a file, too, when it changes. A line on its
standard input ends it: it flushes for so many seconds and prints its health as JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np

from rl4sys.client import connect
from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.client.settings import load_settings
from rl4sys.wire.calls import Watching
from rl4sys.wire.generated import status_pb2, training_pb2, weights_pb2

STEPS = 4
UNIT = 2.0**-24


class Noting:
    """A transport that records what was acknowledged. Its client is never paced: a storm needs all its experience."""

    def __init__(self, transport: GrpcTransport, path: Path) -> None:
        self._transport = transport
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def push(self, request: training_pb2.PushRequest, timeout: float) -> training_pb2.PushReply:
        reply = self._transport.push(request, timeout)
        lines = "".join(f"{request.epoch} {part.first} {part.last}\n" for part in reply.acknowledged)
        os.write(self._file, lines.encode())
        reply.record_share = 0.0
        return reply

    def join(self, request: training_pb2.JoinRequest, timeout: float) -> training_pb2.JoinReply:
        reply = self._transport.join(request, timeout)
        reply.record_share = 0.0
        return reply

    def pull(self, request: training_pb2.PullRequest, timeout: float) -> Iterator[weights_pb2.PatchChunk]:
        return self._transport.pull(request, timeout)

    def watch(self, request: training_pb2.WatchRequest) -> Watching:
        return UnpacedWatching(self._transport.watch(request))

    def act(self, request: training_pb2.ActRequest, timeout: float) -> training_pb2.ActReply:
        return self._transport.act(request, timeout)

    def report(self, request: training_pb2.ReportRequest, timeout: float) -> training_pb2.ReportReply:
        reply = self._transport.report(request, timeout)
        reply.record_share = 0.0
        return reply

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        return self._transport.status(request, timeout)

    def close(self) -> None:
        self._transport.close()


class UnpacedWatching:
    """New versions, without the share of episodes to record."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching

    def __iter__(self) -> Iterator[training_pb2.NewVersion]:
        for news in self._watching:
            news.record_share = 0.0
            yield news

    def cancel(self) -> None:
        self._watching.cancel()


class VersionNotes:
    """Writes the version of each decision to a file, when it is another than before."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(self._file, b"start\n")
        self._last: int | None = None

    def note(self, version: int | None) -> None:
        if version != self._last:
            self._last = version
            os.write(self._file, f"{version}\n".encode())


def main(settings_path: Path, acknowledged: Path, first: int, pause: float) -> None:
    settings = load_settings(settings_path)
    transport = Noting(GrpcTransport(settings), acknowledged)
    asked, seconds = threading.Event(), list[float]()
    versions = VersionNotes(acknowledged.with_suffix(".versions"))
    rng = np.random.default_rng(first)

    def listen() -> None:
        # The input ends when the parent process does.
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        seconds.append(float(line))
        asked.set()

    threading.Thread(target=listen, daemon=True).start()
    with connect(settings, transport=transport) as agent:
        number = first
        while not asked.wait(pause):
            with agent.episode() as episode:
                for _ in range(STEPS):
                    episode.act(rng.normal(size=3).astype(np.float32))
                    episode.reward(number * UNIT)
                    number += 1
                versions.note(agent.health().version)
                episode.end(rng.normal(size=3).astype(np.float32))
        flushed = agent.flush(seconds[0])
        told = {"flushed": flushed, "made": number - first, **asdict(agent.health())}
        snapshot = agent._governor.snapshot
        assert snapshot is not None
        told["weights"] = hashlib.sha256(np.ascontiguousarray(snapshot.weights).tobytes()).hexdigest()
        print(json.dumps(told), flush=True)
    transport.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))

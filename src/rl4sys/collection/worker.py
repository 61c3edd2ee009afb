"""The second process of pipelined collection: acts in environments while its owner learns.

Control messages are JSON lines over a pair of pipes; weights and rollouts lie in memory that both processes map.
The worker ends when its owner closes the pipe, however the owner ended, and for no other reason: when Ctrl-C reaches
both, the owner continues to save, and needs the worker for it.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import signal
import sys
from types import FrameType
from typing import IO, Any

from rl4sys.collection.collector import Collector
from rl4sys.collection.shared_memory import SharedLayout
from rl4sys.config import load_plugins
from rl4sys.environments import ENVIRONMENTS, Grade
from rl4sys.policy import PolicySpec
from rl4sys.seeding import Seeds
from rl4sys.state import from_text, to_text


def main(requests: int, replies: int, memory: int) -> None:
    """Serve requests from one file descriptor with replies on another until the first is closed."""
    for number in (signal.SIGINT, signal.SIGTERM):
        # A handler, since what is ignored would stay ignored in the processes that environments start.
        signal.signal(number, _leave_it_to_the_owner)
    with os.fdopen(requests, "r") as incoming, os.fdopen(replies, "wb", buffering=0) as outgoing:
        setup = json.loads(incoming.readline())
        try:
            worker = _Worker(setup, mmap.mmap(memory, 0))
            _reply(outgoing, {"ready": True})
            for line in incoming:
                _reply(outgoing, worker.serve(json.loads(line)))
        except Exception as error:
            # Whatever it was, the owner must hear of it; it raises the same words there.
            _reply(outgoing, {"error": f"{type(error).__name__}: {error}"})
            raise SystemExit(1) from None


class _Worker:
    def __init__(self, setup: dict[str, Any], memory: mmap.mmap) -> None:
        load_plugins(setup["plugins"], relative_to=setup["directory"])
        ENVIRONMENTS.load_entry_points("rl4sys.environments")
        spec = PolicySpec.from_json(setup["policy"])
        environment = ENVIRONMENTS.parse(setup["environment"])
        lanes = environment.lanes(Seeds(setup["seed"]), environment.num_envs, Grade[setup["grade"]])
        self._collector = Collector(lanes, spec, setup["client"], setup["noise_seed"], setup["kernels"])
        layout = SharedLayout(spec, environment.num_envs, setup["steps"])
        self._weights, self._rollouts = layout.map(memory)

    def serve(self, request: dict[str, Any]) -> dict[str, Any]:
        match request:
            case {"collect": {"version": version, "block": block}}:
                self._collector.load(self._weights)
                self._collector.fill(self._rollouts[block], version)
                return {"episodes": [episode.to_fields() for episode in self._collector.episodes()]}
            case {"state": _}:
                return {"state": to_text(self._collector.state())}
            case {"restore": text}:
                return {"inexact": list(self._collector.restore(from_text(text)))}
        raise ValueError(f"The collection worker got an unknown request: {request}.")


def _leave_it_to_the_owner(number: int, frame: FrameType | None) -> None:
    """Ignore a signal."""


def _reply(outgoing: IO[bytes], message: dict[str, Any]) -> None:
    # An owner that is gone needs no answer.
    with contextlib.suppress(BrokenPipeError):
        line = memoryview((json.dumps(message) + "\n").encode())
        while line:
            line = line[outgoing.write(line) :]


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]))

"""The history that a server keeps of itself."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rl4sys.server.service.server_history import HISTORY_FILES, ServerHistory


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def learner(name: str, version: int = 0) -> SimpleNamespace:
    counts = SimpleNamespace(segments=3, bytes=900, steps=30)
    inbox = SimpleNamespace(queued=lambda: (2, 600), stored=SimpleNamespace(clients={"c": counts}))
    progress = SimpleNamespace(steps=20, mean_return=1.5)
    return SimpleNamespace(name=name, version=version, inbox=inbox, progress=progress, process=None)


def history_of(data: Path, clock: Clock, *hosted: SimpleNamespace, most_bytes: int = 1 << 20) -> ServerHistory:
    storage = SimpleNamespace(free_bytes=10**9)
    learners: Any = SimpleNamespace(data=data, all=lambda: list(hosted), storage=storage)
    sessions: Any = SimpleNamespace(
        clients=lambda: [SimpleNamespace(last_call=clock.now), SimpleNamespace(last_call=None)]
    )
    calls = Counter({("Push", "OK"): 5, ("Push", "UNAVAILABLE"): 1})
    return ServerHistory(learners, sessions, lambda: calls, clock, lambda: 1e9 + clock.now, most_bytes)


def lines(data: Path) -> list[dict[str, Any]]:
    texts = [(data / name).read_text() for name in HISTORY_FILES if (data / name).exists()]
    return [cast(dict[str, Any], json.loads(line)) for text in texts for line in text.splitlines()]


def test_a_line_is_written_every_ten_seconds(tmp_path: Path) -> None:
    clock = Clock()
    history = history_of(tmp_path, clock, learner("a"))
    for second in range(25):
        clock.now = second
        history.look()
    assert [line["time"] - 1e9 for line in lines(tmp_path)] == [0, 10, 20]
    first = lines(tmp_path)[0]
    assert (first["clients"], first["calls"], first["failed_calls"]) == (1, 6, 1)
    assert first["learners"]["a"]["queued_segments"] == 2


def test_only_learners_that_changed_are_in_a_line(tmp_path: Path) -> None:
    clock, busy = Clock(), learner("busy")
    history = history_of(tmp_path, clock, busy, learner("idle"))
    history.look()
    clock.now, busy.version = 10.0, 1
    history.look()
    assert [sorted(line["learners"]) for line in lines(tmp_path)] == [["busy", "idle"], ["busy"]]


def test_the_files_stay_within_their_bound(tmp_path: Path) -> None:
    clock, hosted = Clock(), learner("a")
    history = history_of(tmp_path, clock, hosted, most_bytes=2_000)
    for number in range(100):
        clock.now, hosted.version = 10.0 * number, number
        history.look()
    assert all((tmp_path / name).stat().st_size <= 2_000 for name in HISTORY_FILES)
    kept = [line["learners"]["a"]["version"] for line in lines(tmp_path)]
    assert kept == list(range(kept[0], 100))

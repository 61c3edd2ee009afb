from __future__ import annotations

import io

import pytest

from rl4sys.server.workers.events import (
    Event,
    Failed,
    LearnerProgress,
    Published,
    Ready,
    VersionOutcome,
    read_event,
    write_event,
)

OUTCOMES = (VersionOutcome(3, 20, 1.5), VersionOutcome(4, 2, -0.5))

EVENTS: list[Event] = [
    Ready("{}", "{}", 1, 2, 3, b"\n\x00weights\n"),
    Ready("{}", "{}", 1, 2, 3, progress=LearnerProgress(3, 4, 5, 6, 0.5, {"too_old": 7}, outcomes=OUTCOMES)),
    Published(4, b"\n" * 9, 32),
    LearnerProgress(5, 6, 7, 8, None, {"too_old": 9}, {"loss": 0.5}, OUTCOMES),
    Failed("it broke\nbadly", 3),
]


def test_events_read_from_a_pipe_equal_those_written() -> None:
    pipe = io.BytesIO()
    for event in EVENTS:
        write_event(pipe, event)
    pipe.seek(0)
    assert [read_event(pipe) for _ in EVENTS] == EVENTS
    assert read_event(pipe) is None


@pytest.mark.parametrize("cut", [1, 5, 60, 10_000])
def test_an_event_cut_off_by_a_kill_is_ignored(cut: int) -> None:
    pipe = io.BytesIO()
    write_event(pipe, EVENTS[0])
    whole = pipe.getvalue()
    assert read_event(io.BytesIO(whole[: max(0, len(whole) - cut)])) is None

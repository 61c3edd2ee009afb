"""An outbox directory that a client in one language takes over from a client in the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cpp.programs import needs_cpp, tool

from rl4sys.records import DiskOutbox, OutboxLimits, verify

pytestmark = [needs_cpp, pytest.mark.slow]


def listed(text: str) -> list[tuple[int, int, bytes]]:
    """What `list-outbox` printed."""
    words = [line.split(" ") for line in text.splitlines()]
    return [(int(epoch), int(sequence), bytes.fromhex(payload)) for epoch, sequence, payload in words]


def test_python_takes_over_the_outbox_of_a_killed_cpp_client(tmp_path: Path) -> None:
    tool("fill-outbox", tmp_path / "outbox", "7", "40")
    assert len(verify(tmp_path / "outbox")) > 0
    outbox = DiskOutbox(tmp_path / "outbox", 8)
    try:
        assert [(*p.key, p.payload) for p in outbox.unsettled()] == [
            (7, number, f"parcel {number}".encode()) for number in range(0, 40, 2)
        ]
    finally:
        outbox.close()


def test_cpp_takes_over_the_outbox_of_a_python_client(tmp_path: Path) -> None:
    outbox = DiskOutbox(tmp_path / "outbox", 7, OutboxLimits(), file_bytes=600)
    for number in range(40):
        outbox.offer(bytes([number]) * number)
    outbox.take(10_000)
    outbox.acknowledge(7, range(3, 20))
    outbox.refuse(7, 25, "not_finite")
    expected = [(*parcel.key, parcel.payload) for parcel in outbox.unsettled()]
    outbox.close()
    assert listed(tool("list-outbox", tmp_path / "outbox", "8")) == expected


def test_each_continues_the_outbox_of_the_other(tmp_path: Path) -> None:
    for start in range(3):
        outbox = DiskOutbox(tmp_path / "outbox", 10 * start + 1)
        outbox.offer(f"python {start}".encode())
        outbox.close()
        tool("fill-outbox", tmp_path / "outbox", str(10 * start + 2), "2")
    kept = listed(tool("list-outbox", tmp_path / "outbox", "99"))
    assert [(epoch, payload.decode()) for epoch, _, payload in kept] == [
        (epoch, text)
        for start in range(3)
        for epoch, text in ((10 * start + 1, f"python {start}"), (10 * start + 2, "parcel 0"))
    ]


def test_a_torn_tail_is_cut_by_the_other_client(tmp_path: Path) -> None:
    tool("fill-outbox", tmp_path / "outbox", "7", "3")
    newest = max((tmp_path / "outbox").glob("*.records"))
    newest.write_bytes(newest.read_bytes()[:-3])
    outbox = DiskOutbox(tmp_path / "outbox", 8)
    outbox.offer(b"after")
    expected = [(*parcel.key, parcel.payload) for parcel in outbox.unsettled()]
    outbox.close()
    assert listed(tool("list-outbox", tmp_path / "outbox", "9")) == expected

from __future__ import annotations

from rl4sys.server.learners.stored_segments import StoredSegment


def test_a_record_keeps_the_identity_and_the_bytes_of_its_segment() -> None:
    stored = StoredSegment("client-é", 2**63 - 1, 5, 8, b"\x00segment")
    assert StoredSegment.decode(stored.encode()) == stored

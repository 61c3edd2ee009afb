"""Sequence numbers as ranges, as acknowledgements have them."""

from __future__ import annotations

from collections.abc import Iterable

from rl4sys.wire.generated import training_pb2


def to_ranges(sequences: Iterable[int]) -> list[training_pb2.SequenceRange]:
    """The fewest ranges that contain exactly these numbers, in order."""
    ranges: list[training_pb2.SequenceRange] = []
    for sequence in sorted(set(sequences)):
        if ranges and ranges[-1].last + 1 == sequence:
            ranges[-1].last = sequence
        else:
            ranges.append(training_pb2.SequenceRange(first=sequence, last=sequence))
    return ranges


def covered(ranges: Iterable[training_pb2.SequenceRange], outstanding: Iterable[int]) -> set[int]:
    """Those of the outstanding numbers that lie within the ranges.

    Ranges from outside are never expanded: one may claim to contain 2^63 numbers.
    """
    waiting = set(outstanding)
    found: set[int] = set()
    for part in ranges:
        found |= {sequence for sequence in waiting if part.first <= sequence <= part.last}
    return found

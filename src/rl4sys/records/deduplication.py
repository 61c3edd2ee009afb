"""Which segments a learner already has, exactly and permanently, so that sending one twice is harmless."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any


class SequenceSet:
    """A set of sequence numbers stored as ranges, so that numbers without gaps take no space."""

    def __init__(self, bounds: list[int] | None = None) -> None:
        self.bounds = bounds or []
        """Begin and end of each range in turn, strictly increasing: [0, 5, 7, 8] holds 0 to 4 and 7."""

    def __contains__(self, sequence: int) -> bool:
        return bisect_right(self.bounds, sequence) % 2 == 1

    def among(self, sequences: range) -> int:
        """How many of these numbers are in the set."""
        place = bisect_right(self.bounds, sequences.start)
        if place == len(self.bounds):
            # By far the most frequent case: all of them are new.
            return 0
        found = 0
        for at in range(place - place % 2, len(self.bounds), 2):
            begin, end = self.bounds[at], self.bounds[at + 1]
            if begin >= sequences.stop:
                break
            found += max(0, min(end, sequences.stop) - max(begin, sequences.start))
        return found

    def add_all(self, sequences: range) -> int:
        """Add consecutive numbers; returns how many of them are new."""
        if not self.bounds:
            self.bounds[:] = [sequences.start, sequences.stop]
            return len(sequences)
        if sequences.start == self.bounds[-1]:
            self.bounds[-1] = sequences.stop
            return len(sequences)
        return sum(map(self.add, sequences))

    def add(self, sequence: int) -> bool:
        """Add a number; False if it was there already."""
        bounds = self.bounds
        if bounds and sequence == bounds[-1]:
            # By far the most frequent case: the number after the last.
            bounds[-1] += 1
            return True
        place = bisect_right(bounds, sequence)
        if place % 2 == 1:
            return False
        touches_left = place > 0 and bounds[place - 1] == sequence
        touches_right = place < len(bounds) and bounds[place] == sequence + 1
        begin, end = place - touches_left, place + touches_right
        bounds[begin:end] = ([] if touches_left else [sequence]) + ([] if touches_right else [sequence + 1])
        return True


class Deduplication:
    """Every (client, epoch, sequence) that was ever in the log. A fold over the log: it does no I/O.

    Memory grows with the number of (client, epoch) pairs and of gaps in their sequences, not with records.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, int], SequenceSet] = {}
        self._epochs: Counter[str] = Counter()

    def add(self, client: str, epoch: int, sequence: int) -> bool:
        """Add a segment; False if it was there already and must not be learned from again."""
        return self._of(client, epoch).add(sequence)

    def add_all(self, client: str, epoch: int, sequences: range) -> int:
        """Add consecutive segments; returns how many of them were not there."""
        return self._of(client, epoch).add_all(sequences)

    def among(self, client: str, epoch: int, sequences: range) -> int:
        """How many of these segments were there already."""
        seen = self._seen.get((client, epoch))
        return 0 if seen is None else seen.among(sequences)

    def __contains__(self, key: tuple[str, int, int]) -> bool:
        client, epoch, sequence = key
        sequences = self._seen.get((client, epoch))
        return sequences is not None and sequence in sequences

    def knows_epoch(self, client: str, epoch: int) -> bool:
        """Whether there is a segment of this epoch of a client."""
        return (client, epoch) in self._seen

    def epochs(self, client: str) -> int:
        """How many epochs of a client are remembered."""
        return self._epochs[client]

    def _of(self, client: str, epoch: int) -> SequenceSet:
        sequences = self._seen.get((client, epoch))
        if sequences is None:
            sequences = self._seen[client, epoch] = SequenceSet()
            self._epochs[client] += 1
        return sequences

    def state(self) -> dict[str, Any]:
        """Plain values for `restore`, to be saved together with the log position they belong to."""
        return {"seen": [[client, epoch, *sequences.bounds] for (client, epoch), sequences in self._seen.items()]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Replace the contents by those of `state`."""
        self._seen, self._epochs = {}, Counter()
        for client, epoch, *bounds in state["seen"]:
            if len(bounds) % 2 or any(a >= b for a, b in pairwise(bounds)):
                raise ValueError(
                    f"The saved sequences of client '{client}', epoch {epoch}, are not increasing ranges: {bounds}. "
                    f"Rebuild the deduplication from the log instead."
                )
            self._seen[client, epoch] = SequenceSet(bounds)
            self._epochs[client] += 1

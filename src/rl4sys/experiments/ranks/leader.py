"""Rank 0 as the others see it: it decides, and they do the same."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from rl4sys.checkpoints import decode_state, encode_state
from rl4sys.experience import Array
from rl4sys.experiments.process_random import process_random_state, restore_process_random
from rl4sys.state import State

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup


class RanksDiffer(RuntimeError):
    """Ranks that should be equal are not."""


class NoFollowers:
    """The leader of a run in one process: there are no others."""

    def begin(self, setup: State) -> None:
        """Nothing to do."""

    def copy_learner(self, state: State) -> None:
        """Nothing to do."""

    def copy_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Nothing to do."""

    def copy_parts(self, parts: int) -> None:
        """Nothing to do."""

    def roll_back(self, state: State) -> None:
        """Nothing to do."""

    def require_equal(self, weights: Array) -> None:
        """Nothing to do."""

    def process_random(self) -> State:
        """That of this process."""
        return process_random_state()

    def restore_process_random(self, state: State) -> None:
        """Put it back; of several ranks, that of rank 0."""
        restore_process_random(state["ranks"]["0"] if "ranks" in state else state)

    def end(self) -> None:
        """Nothing to do."""


class GroupLeader:
    """The leader of a group of processes: keeps the others equal where experience and gradients do not."""

    def __init__(self, group: RankGroup) -> None:
        self._group = group

    def begin(self, setup: State) -> None:
        """Let them build the same learner, and their share of the lanes."""
        self._order("begin", **setup)

    def copy_learner(self, state: State) -> None:
        """Let their learners continue from a state, as this one does; the rows of a replay follow."""
        self._order("learner", state=state)

    def copy_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        """Let them load rows of a replay."""
        self._order("rows", first=first, rows=rows)

    def copy_parts(self, parts: int) -> None:
        """Let them split their parts of a batch as often as this rank does."""
        self._order("parts", parts=parts)

    def roll_back(self, state: State) -> None:
        """Let them go back to the weights of a state."""
        self._order("roll_back", state=state)

    def require_equal(self, weights: Array) -> None:
        """Raise `RanksDiffer` unless all ranks have the same weights, before they are saved."""
        self._order("weights")
        digests = gathered_digests(self._group, weights)
        different = [str(rank) for rank, digest in enumerate(digests) if digest != digests[0]]
        if different:
            raise RanksDiffer(
                f"The weights of rank {', '.join(different)} differ from those of rank 0, so the last checkpoint "
                f"is the last good one. Algorithms that draw random numbers take them from their train_state (normal, "
                f"random, permutation, generator): those of numpy and torch differ between processes."
            )

    def process_random(self) -> State:
        """The global random states of all processes."""
        self._order("random")
        return {"ranks": gathered_random(self._group)}

    def restore_process_random(self, state: State) -> None:
        """Put them back; of a single process, that of rank 0."""
        states = state.get("ranks", {"0": state})
        self._order("restore_random", states=states)
        restore_process_random(states["0"])

    def end(self) -> None:
        """Let them end."""
        self._order("end")

    def _order(self, order: str, **values: Any) -> None:
        self._group.send(encode_state({"order": order, **values}))


Leader: TypeAlias = NoFollowers | GroupLeader


def gathered_random(group: RankGroup) -> State:
    """Exchange the global random states of all ranks, by rank."""
    parts = group.gather_bytes(encode_state(process_random_state()), "random")
    return {str(rank): decode_state(part) for rank, part in enumerate(parts)}


def gathered_digests(group: RankGroup, weights: Array) -> list[bytes]:
    """Exchange hashes of the weights of all ranks."""
    return group.gather_bytes(hashlib.sha256(weights.tobytes()).digest(), "weights")

"""Rank 0 notices ranks that are no longer equal."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from rl4sys.experiments.ranks.leader import GroupLeader, RanksDiffer


class OtherRank:
    """A group in which rank 1 answers with bytes of its own, or like rank 0."""

    def __init__(self, answer: bytes | None) -> None:
        self._answer = answer

    def send(self, message: bytes) -> None:
        """Take an order."""

    def gather_bytes(self, mine: bytes, kind: str) -> list[bytes]:
        return [mine, mine if self._answer is None else self._answer]


def test_equal_ranks_may_save() -> None:
    GroupLeader(cast(Any, OtherRank(None))).require_equal(np.ones(3, np.float32))


def test_ranks_that_differ_are_not_saved() -> None:
    with pytest.raises(RanksDiffer, match="weights of rank 1 differ from those of rank 0"):
        GroupLeader(cast(Any, OtherRank(b"other weights"))).require_equal(np.ones(3, np.float32))

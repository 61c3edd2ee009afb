"""Runs one rank, started by `rl4sys train`, torchrun, or another launcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rl4sys.experiments.ranks.follower import follow
from rl4sys.experiments.ranks.rank_group import RankGroup
from rl4sys.experiments.ranks.rank_place import RankPlace

Outcome = TypeVar("Outcome")


def run_rank(
    place: RankPlace, lead: Callable[[RankGroup], Outcome], announce: Callable[[int], None] = lambda port: None
) -> Outcome | None:
    """Meet the other ranks and run this one to its end.

    Rank 0 calls `lead`, which creates or resumes a `Run` with the group and trains it; its outcome is returned. The
    others follow until that run ends, and return None. With port 0, rank 0 chooses a port and calls `announce` with it
    before it waits for the others. A rank that dies makes all others raise `RankLost`.
    """
    group = RankGroup.join(place, announce)
    outcome: Outcome | None = None
    if place.rank == 0:
        outcome = lead(group)
    else:
        follow(group)
    group.close()
    return outcome

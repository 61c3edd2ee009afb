"""The lanes of a run in equal shares, one for each rank: collected by one process in turn, or by all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rl4sys.checkpoints import decode_state, encode_state
from rl4sys.collection import Collected
from rl4sys.collection.pipeline import ShareSource
from rl4sys.experiments.ranks.collected_bytes import decode_collected, encode_collected
from rl4sys.state import State, StateMismatch
from rl4sys.weights import Version

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup


class SharesInTurn:
    """One process collects all shares, one after the other; the result equals that of ranks, to the bit."""

    def __init__(self, shares: Sequence[ShareSource], lanes_each: int) -> None:
        self._shares, self._lanes = shares, lanes_each

    def collect(self, newest: Version) -> Collected:
        """One turn of every share."""
        return together([share.collect(newest) for share in self._shares], self._lanes)

    def state(self) -> State:
        """Those of all shares, by rank."""
        return {str(rank): share.state() for rank, share in enumerate(self._shares)}

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        require_shares(state, len(self._shares))
        return [reason for rank, share in enumerate(self._shares) for reason in share.restore(state[str(rank)])]

    def close(self) -> None:
        """Close all of them."""
        # The first may have joined a cluster for all of them.
        for share in reversed(self._shares):
            share.close()


class GatheredShares:
    """The share of this rank; rank 0 asks the others for theirs, and all of them get the experience of all."""

    def __init__(self, share: ShareSource, lanes_each: int, group: RankGroup) -> None:
        self._share, self._lanes, self._group = share, lanes_each, group

    def collect(self, newest: Version) -> Collected:
        """As rank 0: one turn of all ranks."""
        self._order("turn")
        return self.take_turn(newest)

    def take_turn(self, newest: Version) -> Collected:
        """Collect this share, and exchange it for those of the others."""
        mine = self._share.collect(newest)
        parts = self._group.gather_bytes(encode_collected(mine), "turn")
        return together(
            [mine if rank == self._group.rank else decode_collected(part) for rank, part in enumerate(parts)],
            self._lanes,
        )

    def state(self) -> State:
        """As rank 0: where all shares are, by rank."""
        self._order("state")
        return self.give_state()

    def give_state(self) -> State:
        """Exchange the states of all shares."""
        parts = self._group.gather_bytes(encode_state(self._share.state()), "state")
        return {str(rank): decode_state(part) for rank, part in enumerate(parts)}

    def restore(self, state: State) -> Sequence[str]:
        """As rank 0: let all shares continue there; returns why that is not exact, if it is not."""
        require_shares(state, self._group.ranks)
        self._order("restore", shares=state)
        return self.take_state(state)

    def take_state(self, state: State) -> Sequence[str]:
        """Continue this share where it was; returns the reasons of all ranks."""
        reasons = list(self._share.restore(state[str(self._group.rank)]))
        parts = self._group.gather_bytes(encode_state({"reasons": reasons}), "reasons")
        return [str(reason) for part in parts for reason in decode_state(part)["reasons"]]

    def close(self) -> None:
        """Close the environments of this rank."""
        self._share.close()

    def _order(self, order: str, **values: Any) -> None:
        self._group.send(encode_state({"order": order, **values}))


def require_shares(state: State, ranks: int) -> None:
    """Raise `StateMismatch` if a run was saved with another number of ranks."""
    names = [str(rank) for rank in range(ranks)]
    if sorted(state) != sorted(names):
        saved = len(state) if all(name.isdigit() for name in state) else 1
        raise StateMismatch(
            f"The run was saved with {saved} rank(s), and training.ranks is {ranks} now: each rank has its own share "
            f"of the environments. Set training.ranks in its config.yaml back to {saved}."
        )


def together(parts: Sequence[Collected], lanes_each: int) -> Collected:
    """The experience of all shares, in the order of ranks."""
    episodes = [
        episode._replace(lane=rank * lanes_each + episode.lane)
        for rank, part in enumerate(parts)
        for episode in part.episodes
    ]
    return Collected([segment for part in parts for segment in part.segments], episodes)

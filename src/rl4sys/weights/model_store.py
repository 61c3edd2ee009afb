"""The model store: keeps the newest versions of the weights and makes patches between them."""

from __future__ import annotations

import numpy as np

from rl4sys.state import State, StateMismatch, require
from rl4sys.weights.layout import Flat, require_flat
from rl4sys.weights.patches import Patch, make_patch
from rl4sys.weights.versions import Version, VersionGone, read_only_copy


class ModelStore:
    """The newest versions of one learner's policy, bit for bit as published.

    One thread publishes and restores; any number of threads read. Versions are kept in a tuple that is
    replaced, never changed, so a reader needs no lock.
    """

    def __init__(self, first: Flat, keep: int = 16) -> None:
        """`first` becomes version 0. A larger `keep` spares slow clients full copies, and costs memory."""
        if keep < 1:
            raise ValueError(f"keep is {keep}; a store keeps at least the newest version, so pass 1 or more.")
        require_flat(first, first.size)
        self._size = first.size
        self._keep = keep
        self._versions: tuple[Version, ...] = (Version(0, read_only_copy(first)),)

    @property
    def latest(self) -> int:
        """The number of the newest version."""
        return self._versions[-1].number

    @property
    def newest(self) -> Version:
        """The newest version."""
        return self._versions[-1]

    def publish(self, flat: Flat) -> Version:
        """Make a copy of `flat` the newest version."""
        require_flat(flat, self._size)
        version = Version(self.latest + 1, read_only_copy(flat))
        self._versions = (*self._versions, version)[-self._keep :]
        return version

    def get(self, number: int) -> Version:
        """The version of this number, or `VersionGone`."""
        versions = self._versions
        oldest, newest = versions[0].number, versions[-1].number
        if not oldest <= number <= newest:
            raise VersionGone(
                f"Version {number} is not kept; the store has {oldest} to {newest}. Ask for the newest "
                f"(want=None), or raise keep (now {self._keep})."
            )
        return versions[number - oldest]

    def patch(self, have: int | None, want: int | None = None) -> Patch:
        """The patch from version `have` to `want` (default: the newest); a full copy if `have` is not kept."""
        target = self.newest if want is None else self.get(want)
        return make_patch(_kept(self, have), target)

    def state(self) -> State:
        """The newest version. Older ones only make patches smaller and are not saved."""
        newest = self.newest
        return {"latest": newest.number, "blob": newest.blob}

    def restore(self, state: State) -> None:
        """Restore the store from its `state`."""
        require(state, "latest", "blob")
        latest, blob = state["latest"], state["blob"]
        if not isinstance(latest, int) or not isinstance(blob, np.ndarray):
            raise StateMismatch(
                f"The saved store has latest {latest!r} and a blob of type {type(blob).__name__}; expected "
                f"an integer and an array. The checkpoint is damaged; resume from another."
            )
        require_flat(blob, self._size)
        self._versions = (Version(latest, read_only_copy(blob)),)


def _kept(store: ModelStore, number: int | None) -> Version | None:
    try:
        return None if number is None else store.get(number)
    except VersionGone:
        return None

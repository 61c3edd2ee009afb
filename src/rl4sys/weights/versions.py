"""Versions: immutable weights with a number."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rl4sys.weights.layout import FLOAT32, Flat


class VersionGone(LookupError):
    """A requested version is no longer, or not yet, in the store."""


def read_only_copy(flat: Flat) -> Flat:
    """An immutable copy of the weights: it is a view of `bytes`, which cannot be made writable."""
    return np.frombuffer(flat.tobytes(), FLOAT32)


# Without slots, since `cached_property` keeps its value in the instance's dictionary.
@dataclass(frozen=True, eq=False)
class Version:
    """Immutable weights with their number. Build it from a `read_only_copy`."""

    number: int
    blob: Flat

    @cached_property
    def sha256(self) -> bytes:
        """The digest of the blob, computed at first use: most versions never leave the process."""
        return hashlib.sha256(self.blob.data).digest()

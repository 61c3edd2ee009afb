"""One published state of the weights."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rl4sys.weights.layout import FLOAT32, Flat


class VersionGone(LookupError):
    """A version was asked for that is no longer, or not yet, kept."""


def read_only_copy(flat: Flat) -> Flat:
    """Weights that nobody can change: they lie in `bytes`, which cannot be made writable."""
    return np.frombuffer(flat.tobytes(), FLOAT32)


# Without slots, since `cached_property` keeps its value in the instance's dictionary.
@dataclass(frozen=True, eq=False)
class Version:
    """Immutable weights with their number. Build it from a `read_only_copy`."""

    number: int
    blob: Flat

    @cached_property
    def sha256(self) -> bytes:
        """The digest of the blob, computed when first asked for: most versions never leave the process."""
        return hashlib.sha256(self.blob.data).digest()

"""One root seed, children by name: every purpose has its own generator."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Seeds:
    """The root of all randomness in a run. The same root and the same name always give the same numbers."""

    root: int

    def sequence(self, *name: str | int) -> np.random.SeedSequence:
        """The seed sequence of a named purpose, such as `("environment", 3)`."""
        digest = hashlib.sha256("/".join(map(str, name)).encode()).digest()
        words = tuple(int(word) for word in np.frombuffer(digest[:16], "<u4"))
        return np.random.SeedSequence(self.root, spawn_key=words)

    def generator(self, *name: str | int) -> np.random.Generator:
        """A numpy generator for a named purpose."""
        return np.random.Generator(np.random.PCG64(self.sequence(*name)))

    def integer(self, *name: str | int) -> int:
        """A 63-bit integer for a named purpose, where a library wants a plain seed."""
        return int(self.sequence(*name).generate_state(1, np.uint64)[0] >> np.uint64(1))

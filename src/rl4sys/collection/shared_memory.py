"""Memory that two processes see: one block of weights and two rollouts, filled in turn."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass

import numpy as np

from rl4sys.collection.rollout import Rollout
from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import PolicySpec, layout_of

BLOCKS = 2


@dataclass(frozen=True, slots=True)
class SharedLayout:
    """The layout of weights and rollouts in memory, which both processes compute from the same three values."""

    spec: PolicySpec
    lanes: int
    steps: int

    def size(self) -> int:
        """Bytes altogether."""
        return self._weight_bytes() + BLOCKS * Rollout.size(self._specs())

    def map(self, memory: mmap.mmap) -> tuple[Array, list[Rollout]]:
        """The weights and the rollouts, as views of the memory."""
        view, start = memoryview(memory), self._weight_bytes()
        weights = np.frombuffer(view, np.float32, layout_of(self.spec.program).size)
        each = Rollout.size(self._specs())
        blocks = [view[start + i * each : start + (i + 1) * each] for i in range(BLOCKS)]
        return weights, [Rollout.allocate(self._specs(), block) for block in blocks]

    def _specs(self) -> tuple[ArraySpec, ...]:
        return Rollout.specs(self.spec, self.lanes, self.steps)

    def _weight_bytes(self) -> int:
        return -(-4 * layout_of(self.spec.program).size // 64) * 64


def anonymous_memory(size: int) -> int:
    """A file descriptor of zeroed memory that vanishes with the processes that hold it, even if they are killed."""
    # Not a file in /dev/shm: containers often limit that to 64 MB, and writing beyond it kills the process.
    descriptor = os.memfd_create("rl4sys")
    os.truncate(descriptor, size)
    return descriptor

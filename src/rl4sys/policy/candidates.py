"""Candidates: rows of which a policy chooses one. How many there are is an observation, and differs each time."""

from __future__ import annotations

import math

from rl4sys.experience import Array, ArraySpec

CANDIDATES = "candidates"
"""The observation [N, F] whose first k rows are the candidates; the others are zeros that nothing reads."""
COUNT = "candidate_count"
"""The observation [1] that holds k. The heads choose among the first k choices."""


def candidate_arrays(most: int, features: int) -> tuple[ArraySpec, ArraySpec]:
    """The two observations of up to `most` candidates with so many features each."""
    return ArraySpec(CANDIDATES, "float32", (most, features)), ArraySpec(COUNT, "float32", (1,))


def real_rows(count: Array, most: int) -> int:
    """k from the observation [1]: candidate i exists if i < count; none where count is NaN."""
    value = count.item()
    if value >= most:
        return most
    return math.ceil(value) if value > 0.0 else 0

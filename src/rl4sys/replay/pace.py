"""How often a buffer yields batches to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rl4sys.experience import Array


@dataclass(frozen=True, slots=True)
class OnceFresh:
    """Every step is in one batch, soon after it happened: the pace of on-policy algorithms."""

    steps: int
    """A batch is due when this many steps are held. More make gradients less noisy and updates less frequent."""
    max_age: int
    """Segments whose policy is older than this many versions are counted and not used."""
    episodes: int | None = None
    """If set, a batch is due as soon as this many episodes have ended, and after `steps` steps at the latest."""

    def __post_init__(self) -> None:
        if self.steps < 1 or self.max_age < 0 or (self.episodes is not None and self.episodes < 1):
            raise ValueError(f"{self}: choose steps ≥ 1, max_age ≥ 0 and, if set, episodes ≥ 1.")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A fixed number of updates for each step added: the pace of off-policy algorithms."""

    updates_per_step: float
    """More updates per step learn more from the same data, and take more time."""
    warmup: int
    """This many steps are collected before learning starts; no updates are due for them."""
    batch_size: int
    """Transitions in one update. More make gradients less noisy and updates slower."""

    def __post_init__(self) -> None:
        if self.exact_updates_per_step <= 0 or self.warmup < 0 or self.batch_size < 1:
            raise ValueError(f"{self}: choose updates_per_step ≥ 1e-6, warmup ≥ 0 and batch_size ≥ 1.")

    @property
    def exact_updates_per_step(self) -> Fraction:
        """The intended ratio: 0.1 is 1/10 and 1 / 3 is 1/3, although no float equals either."""
        return Fraction(self.updates_per_step).limit_denominator(1_000_000)


class UpdateCredit:
    """Counts the updates that are due, as an exact fraction, so that the ratio never drifts."""

    def __init__(self, pace: Ratio) -> None:
        self._warmup = pace.warmup
        # Whole numbers only: a step adds `_per_step` parts, and an update takes `_per_update` of them.
        self._per_step, self._per_update = pace.exact_updates_per_step.as_integer_ratio()
        self._parts = 0

    def earn(self, steps: int, total: int) -> None:
        """Count new steps; `total` is the number of all steps ever added, including these."""
        self._parts += self._per_step * max(0, min(steps, total - self._warmup))

    def affords(self, steps: Array, total: int) -> int:
        """How many of consecutive segments with these steps [N] make no update due; `total` is that before them."""
        if self._parts >= self._per_update:
            return 0
        added = np.cumsum(steps)
        earned = self._per_step * np.clip(total + added - self._warmup, 0, added)
        return int(np.searchsorted(earned, self._per_update - self._parts))

    def spend(self) -> bool:
        """Take one update if one is due; returns whether it was."""
        if self._parts < self._per_update:
            return False
        self._parts -= self._per_update
        return True

    def state(self) -> str:
        """The updates still due, as a fraction such as `3/4`."""
        return f"{self._parts}/{self._per_update}"

    def restore(self, state: str) -> None:
        """Continue with the credit of `state`, even at another pace."""
        self._parts = int(Fraction(state) * self._per_update)

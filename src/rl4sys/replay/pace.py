"""How often a buffer has something to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class OnceFresh:
    """Every step is learned from in one batch, soon after it happened: the pace of on-policy algorithms."""

    steps: int
    """A batch is due when this many steps are held. More make gradients steadier and updates rarer."""
    max_age: int
    """Segments of policies older than this many versions are counted and not used."""
    episodes: int | None = None
    """If set, a batch is due as soon as this many episodes have ended, and with `steps` at the latest."""

    def __post_init__(self) -> None:
        if self.steps < 1 or self.max_age < 0 or (self.episodes is not None and self.episodes < 1):
            raise ValueError(f"{self}: choose steps ≥ 1, max_age ≥ 0 and, if any, episodes ≥ 1.")


@dataclass(frozen=True, slots=True)
class Ratio:
    """A fixed number of updates for each step that comes in: the pace of off-policy algorithms."""

    updates_per_step: float
    """More updates per step learn more from the same data, and take more time."""
    warmup: int
    """This many steps are gathered before learning starts; they earn no updates."""
    batch_size: int
    """Transitions in one update. More make gradients steadier and updates slower."""

    def __post_init__(self) -> None:
        if self.exact_updates_per_step <= 0 or self.warmup < 0 or self.batch_size < 1:
            raise ValueError(f"{self}: choose updates_per_step ≥ 1e-6, warmup ≥ 0 and batch_size ≥ 1.")

    @property
    def exact_updates_per_step(self) -> Fraction:
        """The ratio that was meant: 0.1 is 1/10 and 1 / 3 is 1/3, though no float equals either."""
        return Fraction(self.updates_per_step).limit_denominator(1_000_000)


class UpdateCredit:
    """Counts the updates that steps have earned, down to the fraction, so that the ratio never drifts."""

    def __init__(self, pace: Ratio) -> None:
        self._warmup = pace.warmup
        # Counted in whole parts of an update: a step earns `wage` of them, an update costs `price`.
        self._wage, self._price = pace.exact_updates_per_step.as_integer_ratio()
        self._parts = 0

    def earn(self, steps: int, total: int) -> None:
        """Take note of new steps; `total` counts all steps ever added, these included."""
        self._parts += self._wage * max(0, min(steps, total - self._warmup))

    def spend(self) -> bool:
        """Pay for one update; false when there is not enough credit for a whole one."""
        if self._parts < self._price:
            return False
        self._parts -= self._price
        return True

    def state(self) -> str:
        """The updates that are still to be made, as a fraction such as `3/4`."""
        return f"{self._parts}/{self._price}"

    def restore(self, state: str) -> None:
        """Go on with the credit that `state` wrote, even at another pace."""
        self._parts = int(Fraction(state) * self._price)

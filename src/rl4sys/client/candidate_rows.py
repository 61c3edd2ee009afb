"""Copies candidates, of which there are some number up to the most, into rows of a segment buffer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rl4sys.client.action_adapter import BadAction
from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import CANDIDATES, COUNT

_INFINITY = float("inf")


def no_such_candidate(choice: int, count: int) -> BadAction:
    """The error of a choice that is not there."""
    return BadAction(f"Got choice {choice} of {count} candidates; the first is 0.")


class CandidateRows:
    """The observation of up to N candidates and their number, as one argument of `act`: an array [k, features]."""

    def __init__(self, spec: ArraySpec) -> None:
        self.name = spec.name
        self._most, self._features = spec.shape

    @classmethod
    def among(cls, specs: Sequence[ArraySpec]) -> CandidateRows | None:
        """Those of a policy, if it observes candidates."""
        by_name = {spec.name: spec for spec in specs}
        return cls(by_name[CANDIDATES]) if {CANDIDATES, COUNT} <= by_name.keys() else None

    def require_choice(self, observation: Any, choice: int) -> None:
        """Raise `BadAction` for a choice that is not among the candidates of an observation, as it was passed."""
        count = self._passed(observation)
        if count is not None and choice >= count:
            raise no_such_candidate(choice, count)

    def _passed(self, observation: Any) -> int | None:
        """How many candidates an observation has; None where it cannot be counted."""
        named = observation if isinstance(observation, Mapping) else {self.name: observation}
        if (given := named.get(COUNT)) is not None:
            return int(np.reshape(given, -1)[0]) or None if np.size(given) == 1 else None
        rows: Any = named.get(self.name)
        return len(rows) or None if np.ndim(rows) == 2 else None

    def write(self, columns: Mapping[str, Array], row: int, rows: Array) -> str | None:
        """Copy them into row `row`, zeros after them; returns what is wrong with them, or None."""
        count = len(rows) if rows.ndim else 0
        if rows.size == 0:
            count = 0
        elif rows.ndim != 2 or rows.shape[1] != self._features:
            return (
                f"Got '{self.name}' of shape {rows.shape}; expected up to {self._most} rows of {self._features} "
                f"features. Reshape them, or change `candidates` in the config and choose another policy_id."
            )
        if count > self._most:
            return (
                f"Got {count} candidates; this policy chooses among {self._most} at most. Pass fewer, or raise "
                f"`candidates` in the config and choose another policy_id."
            )
        if rows.dtype.kind not in "fiub":
            return f"Got '{self.name}' as {rows.dtype}; expected numbers."
        place = columns[self.name][row]
        place[count:] = 0.0
        columns[COUNT][row] = count
        if count == 0:
            return None
        place[:count] = rows
        flat = place[:count].reshape(-1)
        if not flat.dot(flat) < _INFINITY and not np.isfinite(flat).all():
            return f"'{self.name}' contains NaN or infinity; leave such candidates out, or replace the values."
        return None

    def keep(self, columns: Mapping[str, Array], row: int, count: Array) -> str | None:
        """Only the first `count` of the rows that were written count; returns what is wrong with that, or None."""
        rows = columns[COUNT][row, 0]
        if count.size != 1 or count.dtype.kind not in "fiu" or not 0 <= count.item() <= rows or count.item() % 1:
            return (
                f"Got '{COUNT}' {count.tolist()} with {int(rows)} rows; pass how many of them count, or leave it out."
            )
        columns[COUNT][row] = count.item()
        columns[self.name][row, int(count.item()) :] = 0.0
        return None

    def mask(self, columns: Mapping[str, Array], row: int, mask: Array) -> Array:
        """A mask with an entry for each candidate, filled up to one for each choice."""
        count = int(columns[COUNT][row, 0])
        if mask.shape != (count,) or count == self._most:
            return mask
        return np.concatenate([mask, np.zeros(self._most - count, np.bool_)])

"""How the rows of a replay buffer are named in a checkpoint, in this version and in earlier ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.replay.following import Final

OBSERVATION, EXTRAS = "observation/", "extras/"
PREDECESSOR = "predecessor"
_NEXT_OBSERVATION = "next_observation/"
"""Versions up to 0.2 saved every observation twice."""
_FINAL_OF, _FINAL_SINCE, _FINAL = "final_of", "final_since", "final_observation/"
_NONE = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class SavedRows:
    """The rows of consecutive ids."""

    columns: Arrays
    """One row per step."""
    stacks: Mapping[str, Arrays]
    """The frames of stacked arrays by name."""
    predecessor: Array
    """The id of the previous step of the episode, or −1."""
    final: Final
    """Observations, not only of these ids, of which it became known with one of these ids that they are final."""
    following: Arrays = field(default_factory=dict)
    """The observations after all steps; only in rows of earlier versions."""

    def named(self) -> dict[str, Array]:
        """All arrays by name."""
        rows = dict(self.columns) | {PREDECESSOR: self.predecessor}
        for name, frames in self.stacks.items():
            rows |= {OBSERVATION + name + suffix: array for suffix, array in frames.items()}
        if len(self.final.of):
            rows |= {_FINAL_OF: self.final.of, _FINAL_SINCE: self.final.since}
            rows |= {_FINAL + name: array for name, array in self.final.observation.items()}
        return rows

    @classmethod
    def parse(cls, rows: Arrays, stacked: Collection[str]) -> SavedRows:
        """The same from all arrays; `stacked` names the observations that are stored as frames."""
        columns = dict(rows)
        stacks = {}
        for name in stacked:
            own = [key for key in columns if key.split("#")[0] == OBSERVATION + name]
            stacks[name] = {key.removeprefix(OBSERVATION + name): columns.pop(key) for key in own}
        final, following = (
            {name.removeprefix(prefix): columns.pop(name) for name in list(columns) if name.startswith(prefix)}
            for prefix in (_FINAL, _NEXT_OBSERVATION)
        )
        predecessor = columns.pop(PREDECESSOR)
        known = Final(columns.pop(_FINAL_OF, _NONE), columns.pop(_FINAL_SINCE, _NONE), final)
        return cls(columns, stacks, predecessor, known, following)

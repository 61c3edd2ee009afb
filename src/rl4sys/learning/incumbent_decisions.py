"""Decisions of the incumbent as a learner uses them: to imitate the first ones, then for replay, if it has any."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from rl4sys.engine import ImitationConfig
from rl4sys.experience import Segment, Sequences
from rl4sys.replay import OnceFresh, TrajectoryBuffer
from rl4sys.state import State, require


class IncumbentDecisions:
    """Holds decisions until there are enough to imitate; later ones are replayed, or counted if they are of no use."""

    def __init__(self, plan: ImitationConfig | None = None, *, replays: bool = True) -> None:
        """`replays`: whether the algorithm learns from decisions of any policy."""
        self.plan, self._replays = plan, replays
        self.unused = 0
        """Steps that nothing was learned from: without a probability, gradients of a policy cannot use them."""
        pace = OnceFresh(plan.decisions if plan is not None else 1, max_age=sys.maxsize)
        self._held: TrajectoryBuffer | None = None if plan is None else TrajectoryBuffer(pace)

    def add(self, segment: Segment) -> bool:
        """Take in a segment of the incumbent; returns whether it belongs into the replay buffer."""
        if self._held is not None:
            self._held.add(segment)
        elif not self._replays:
            self.unused += segment.steps
        return self._replays

    def due(self) -> Iterator[Sequences]:
        """Once, when there are enough of them: the decisions to imitate."""
        batch = None if self._held is None else next(self._held.due(), None)
        if batch is not None:
            self._held = None
            yield batch

    def state(self) -> State:
        """What is held and counted; empty if there never was anything."""
        held = None if self._held is None else self._held.state()
        return {"unused": self.unused, "held": held} if self.plan is not None or self.unused else {}

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken; a state without decisions leaves everything as it is."""
        if not state:
            return
        require(state, "unused", "held")
        self.unused = int(state["unused"])
        if state["held"] is None:
            self._held = None
        elif self._held is not None:
            self._held.restore(state["held"])

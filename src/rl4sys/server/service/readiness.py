"""Whether a server can take experience, and which learners are in trouble; cheap enough to be asked all the time."""

from __future__ import annotations

from typing import NamedTuple

from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.learners import Learners

_TROUBLED = (Condition.FAILED, Condition.HELD, Condition.REFUSED)


class Readiness(NamedTuple):
    """The state of a server as probes want it."""

    state: str
    """`starting`, `serving`, `storage_failed` or `draining`."""
    problem: str = ""
    """Why nothing can be stored, if nothing can."""
    troubled: tuple[str, ...] = ()
    """A line for each learner that FAILED or is HELD. The server is ready nevertheless: the others learn."""

    @property
    def is_ready(self) -> bool:
        """Whether calls that store experience are accepted."""
        return self.state == "serving"


STARTING = Readiness("starting")


def readiness(learners: Learners, *, is_draining: bool) -> Readiness:
    """The readiness of a service."""
    hosted = learners.all()
    problem = learners.storage.problem or next(filter(None, (each.inbox.problem for each in hosted)), "")
    state = "draining" if is_draining else "storage_failed" if problem else "serving"
    troubled = [
        f"learner {each.name}: {each.condition.name}: {each.problem}" for each in hosted if each.condition in _TROUBLED
    ]
    troubled += [f"learner {name}: FAILED: {why}" for name, why in sorted(learners.problems.items())]
    return Readiness(state, problem, tuple(troubled))

"""The part of a server that one of its processes is, and the learners that belong to it."""

from __future__ import annotations

from dataclasses import dataclass

from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.port_range import process_of


@dataclass(frozen=True, slots=True)
class ProcessPart:
    """One of several processes that serve together; by default the only one."""

    number: int = 0
    count: int = 1
    server: str = ""
    """The address of them all, as clients give it: HOST:FIRST-LAST."""

    @classmethod
    def parse(cls, text: str) -> ProcessPart:
        """Read what `str` wrote."""
        number, count, server = text.split("/", 2)
        return cls(int(number), int(count), server)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}/{self.server}"

    def owns(self, learner: str) -> bool:
        """Whether a learner belongs to this process."""
        return process_of(learner, self.count) == self.number

    def require_own(self, learner: str) -> None:
        """Raise unless a learner belongs to this process: another one would serve a second learner of that name."""
        if not self.owns(learner):
            raise CallFailed(
                Code.FAILED_PRECONDITION,
                f"The learner '{learner}' belongs to another process of this server. Give the range of its ports, "
                f"from which the right one is chosen: server: {self.server}",
            )


ONLY_PROCESS = ProcessPart()
"""A server of one process, which has all learners."""

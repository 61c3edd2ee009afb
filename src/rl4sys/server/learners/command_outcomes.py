"""What became of the commands in a learner's log, as its worker reports."""

from __future__ import annotations

from collections import OrderedDict

from rl4sys.server.workers.events import Commanded, Ready

_KEPT = 64


class CommandOutcomes:
    """The settings of a learner after all commands that were folded, and the last commands themselves."""

    def __init__(self) -> None:
        self.settings = ""
        """The config with the changes of operators, in canonical form; empty before the worker was ready."""
        self.is_frozen = False
        self._outcomes: OrderedDict[int, Commanded] = OrderedDict()

    def note_ready(self, ready: Ready) -> None:
        """The worker has started, and folded some of the log."""
        self.settings, self.is_frozen = ready.settings or ready.config, ready.is_frozen

    def note(self, commanded: Commanded) -> None:
        """A command was folded."""
        self.settings, self.is_frozen = commanded.settings, commanded.is_frozen
        self._outcomes[commanded.position] = commanded
        if len(self._outcomes) > _KEPT:
            self._outcomes.popitem(last=False)

    def find(self, position: int) -> Commanded | None:
        """The command before this position, if it was folded since the server started."""
        return self._outcomes.get(position)

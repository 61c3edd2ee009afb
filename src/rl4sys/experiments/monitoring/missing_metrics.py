"""Warnings about alerts whose metric does not exist, which is probably misspelt."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from rl4sys.experiments.monitoring.machine_metrics import METRICS as MACHINE
from rl4sys.suggestions import did_you_mean

_log = logging.getLogger(__name__)

KNOWN = MACHINE | {
    *("step", "episodes", "version"),
    *("rollout/return", "rollout/length"),
    *("evaluation/return", "evaluation/deviation", "evaluation/length"),
    *("train/skipped_updates", "train/rollbacks", "train/batch_parts"),
}
"""What every run can have; some of it only later in a run, or only in some runs."""
_LEARNED, _BUFFER = "train/", "buffer/"
_RECORDS_BEFORE_WARNING = 3
"""Records about what was learned. More than one: an algorithm need not report everything at every update."""


class MissingMetrics:
    """Warns once about every metric of an alert that a run does not have."""

    def __init__(self, asked: Iterable[tuple[str, Iterable[str]]]) -> None:
        """`asked` has the title of each alert, and the metrics that it reads."""
        self._open = {(title, name) for title, names in asked for name in names if name not in KNOWN}
        self._learned = 0

    def note(self, fresh: Mapping[str, float], now: Mapping[str, float]) -> None:
        """Look at the metrics of a record, and at the newest of all that were ever measured."""
        if not self._open:
            return
        self._learned += any(name.startswith(_LEARNED) for name in fresh)
        for title, name in sorted(self._open):
            if name not in now and self._is_due(name, now):
                _log.warning("Alert '%s': there is no metric %s%s", title, name, _hint(name, now))
                self._open.discard((title, name))

    def _is_due(self, name: str, now: Mapping[str, float]) -> bool:
        """Whether it would have been measured by now: only algorithms and buffers have metrics of their own."""
        if name.startswith(_LEARNED):
            return self._learned >= _RECORDS_BEFORE_WARNING
        if name.startswith(_BUFFER):
            return any(other.startswith(_BUFFER) for other in now)
        return True


def _hint(name: str, now: Mapping[str, float]) -> str:
    names = sorted(KNOWN | now.keys())
    return did_you_mean(name, names) or f"; there are: {', '.join(names)}."

"""Watches the records of a run and acts when a condition holds: notifies people, stops the run, or rolls it back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rl4sys.alerts import AlertWatch, Notifications
from rl4sys.experiments.metrics import MetricRecord
from rl4sys.experiments.monitoring.config import AlertConfig
from rl4sys.experiments.monitoring.events import Events
from rl4sys.experiments.monitoring.machine_metrics import METRICS as MACHINE
from rl4sys.experiments.monitoring.machine_metrics import PREFIX, MachineMetrics
from rl4sys.state import State
from rl4sys.suggestions import did_you_mean

_log = logging.getLogger(__name__)
KNOWN_METRICS = MACHINE | {
    *("step", "episodes", "version"),
    *("rollout/return", "rollout/length"),
    *("evaluation/return", "evaluation/deviation", "evaluation/length"),
    *("train/skipped_updates", "train/rollbacks", "train/batch_parts"),
}
"""What every run can have; some of it only later in a run, or only in some runs."""
_LEARNED, _BUFFER = "train/", "buffer/"
_FROM_INFO = ("rollout/info/", "evaluation/info/", "rollout/success_rate", "evaluation/success_rate")
"""What only environments with numbers in `info` have, once an episode has ended."""
_RECORDS_BEFORE_WARNING = 3
"""Records about what was learned. More than one: an algorithm need not report everything at every update."""


@dataclass(frozen=True, slots=True)
class AlertDecision:
    """What the alerts ask the run to do after a record."""

    stop: str | None = None
    """Why it should stop."""
    solved: str | None = None
    """Why it should end as a success."""
    rollback: str | None = None
    """Why it should be rolled back."""
    since: int = 0
    """The first step of the condition: a good checkpoint is older."""


class Alerts:
    """All alerts of one run. Their state is saved, so that a resumed run acts as it would have acted."""

    def __init__(
        self,
        configs: Sequence[AlertConfig],
        machine: MachineMetrics,
        events: Events,
        messages: Notifications | None = None,
    ) -> None:
        self._alerts = [
            _Watch(config, AlertWatch(config.when, config.over, config.lasting, config.quiet)) for config in configs
        ]
        self._machine, self._events = machine, events
        self._messages = messages or Notifications()
        asked = [(config.title, watch.condition.metrics) for config, watch in self._alerts]
        self._asks_machine = any(name.startswith(PREFIX) for _, names in asked for name in names)
        self._missing_metrics = MissingMetrics(asked)
        self._now: dict[str, float] = {}

    def note(self, record: MetricRecord) -> AlertDecision:
        """Look at one record; does what the alerts that fire ask for, but for what only the run itself can do."""
        if not self._alerts:
            return AlertDecision()
        fresh = {"step": float(record.step), **record.metrics}
        if self._asks_machine:
            fresh |= self._machine.of(record)
        self._now |= fresh
        self._missing_metrics.note(fresh, self._now)
        decision = AlertDecision()
        for config, watch in self._alerts:
            if watch.fires(record.step, fresh, self._now):
                decision = _joined(decision, self._act(config, watch, record.step))
        return decision

    def _act(self, config: AlertConfig, watch: AlertWatch, step: int) -> AlertDecision:
        values = watch.values(self._now)
        shown = ", ".join(f"{name} is {value:g}" for name, value in values.items())
        text = f"{config.title}: at step {step:,} {shown}" if shown else f"{config.title}: at step {step:,}"
        for action in config.do:
            match action:
                case "log":
                    self._events.note(step, "alert", name=config.title, when=config.when, values=values)
                case "terminal":
                    _log.warning("Alert: %s", text)
                case "notify":
                    self._messages.send(f"RL4Sys: {config.title}", text, config.notify)
        return AlertDecision(
            stop=text if "stop" in config.do else None,
            solved=text if "solved" in config.do else None,
            rollback=text if "rollback" in config.do else None,
            since=int(watch.since or 0) if "rollback" in config.do else 0,
        )

    def state(self) -> State:
        """What later decisions depend on. Measures of the machine are left out: they belong to this process."""
        return {
            "now": {name: value for name, value in self._now.items() if not name.startswith(PREFIX)},
            "watches": [alert.state() for alert in self._alerts],
        }

    def restore(self, state: State | None) -> None:
        """Continue there. A new or changed alert starts without a past."""
        if state is None:
            return
        self._now = dict(state["now"])
        # Several alerts may have the same condition: each gets what was saved of the next one of them.
        saved = list(state["watches"])
        for _, watch in self._alerts:
            found = next((each for each in saved if each["when"] == watch.condition.text), None)
            if found is not None:
                saved.remove(found)
                watch.restore(found)

    def close(self) -> None:
        """Wait for messages that are on their way."""
        self._messages.close()


class _Watch(NamedTuple):
    """One alert of a run."""

    config: AlertConfig
    watch: AlertWatch

    def state(self) -> State:
        """What it depends on, but for the machine."""
        state = self.watch.state()
        past = {name: pairs for name, pairs in state["past"].items() if not name.startswith(PREFIX)}
        return {**state, "past": past}


def _joined(one: AlertDecision, other: AlertDecision) -> AlertDecision:
    """Both decisions in one; the earlier step where both ask for a rollback."""
    since = min(one.since, other.since) if one.rollback and other.rollback else max(one.since, other.since)
    return AlertDecision(one.stop or other.stop, one.solved or other.solved, one.rollback or other.rollback, since)


class MissingMetrics:
    """Warns once about every metric of an alert that a run does not have."""

    def __init__(self, asked: Iterable[tuple[str, Iterable[str]]]) -> None:
        """`asked` has the title of each alert, and the metrics that it reads."""
        self._open = {(title, name) for title, names in asked for name in names if name not in KNOWN_METRICS}
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
        if name.startswith(_FROM_INFO):
            return name.partition("/")[0] + "/return" in now
        return True


def _hint(name: str, now: Mapping[str, float]) -> str:
    names = sorted(KNOWN_METRICS | now.keys())
    return did_you_mean(name, names) or f"; there are: {', '.join(names)}."

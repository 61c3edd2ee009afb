"""Watches the records of a run and acts when a condition holds: notifies people, stops the run, or rolls it back."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rl4sys.experiments.metrics import MetricRecord
from rl4sys.experiments.monitoring.conditions import AlertCondition, MetricHistory
from rl4sys.experiments.monitoring.config import AlertConfig
from rl4sys.experiments.monitoring.events import Events
from rl4sys.experiments.monitoring.machine_metrics import METRICS as MACHINE
from rl4sys.experiments.monitoring.machine_metrics import PREFIX, MachineMetrics
from rl4sys.experiments.monitoring.notifications import Notifications
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
_RECORDS_BEFORE_WARNING = 3
"""Records about what was learned. More than one: an algorithm need not report everything at every update."""
_MOST_REMEMBERED = 10_000
"""Values of one metric that are kept; older ones go first."""


@dataclass(frozen=True, slots=True)
class AlertDecision:
    """What the alerts ask the run to do after a record."""

    stop: str | None = None
    """Why it should stop."""
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
        self._watches = [_Watch(config) for config in configs]
        self._machine, self._events = machine, events
        self._messages = messages or Notifications()
        self._asks_machine = any(name.startswith(PREFIX) for watch in self._watches for name in watch.condition.metrics)
        self._missing_metrics = MissingMetrics((watch.config.title, watch.condition.metrics) for watch in self._watches)
        self._now: dict[str, float] = {}

    def note(self, record: MetricRecord) -> AlertDecision:
        """Look at one record; does what the alerts that fire ask for, but for what only the run itself can do."""
        if not self._watches:
            return AlertDecision()
        fresh = {"step": float(record.step), **record.metrics}
        if self._asks_machine:
            fresh |= self._machine.of(record)
        self._now |= fresh
        self._missing_metrics.note(fresh, self._now)
        decision = AlertDecision()
        for watch in self._watches:
            since = watch.fires(record.step, fresh, self._now)
            if since is not None:
                decision = _joined(decision, self._act(watch, record.step, since))
        return decision

    def _act(self, watch: _Watch, step: int, since: int) -> AlertDecision:
        config, values = watch.config, watch.values(self._now)
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
            rollback=text if "rollback" in config.do else None,
            since=since if "rollback" in config.do else 0,
        )

    def state(self) -> State:
        """What later decisions depend on. Measures of the machine are left out: they belong to this process."""
        return {
            "now": {name: value for name, value in self._now.items() if not name.startswith(PREFIX)},
            "watches": [watch.state() for watch in self._watches],
        }

    def restore(self, state: State | None) -> None:
        """Continue there. A new or changed alert starts without a past."""
        if state is None:
            return
        self._now = dict(state["now"])
        # Several alerts may have the same condition: each gets what was saved of the next one of them.
        saved = list(state["watches"])
        for watch in self._watches:
            found = next((each for each in saved if each["when"] == watch.config.when), None)
            if found is not None:
                saved.remove(found)
                watch.restore(found)

    def close(self) -> None:
        """Wait for messages that are on their way."""
        self._messages.close()


class _Watch:
    """One alert: its condition, the past that it looks back on, and when it fired last."""

    def __init__(self, config: AlertConfig) -> None:
        self.config = config
        self.condition = AlertCondition(config.when)
        self._past: dict[str, list[tuple[int, float]]] = {name: [] for name in self.condition.remembered}
        self._since: int | None = None
        self._fired: int | None = None

    def fires(self, step: int, fresh: Mapping[str, float], now: Mapping[str, float]) -> int | None:
        """The step since which the condition has held, if it is time to act; else None."""
        for name, past in self._past.items():
            if math.isfinite(fresh.get(name, math.nan)):
                past.append((step, fresh[name]))
                self._forget(past, step)
        if not self.condition.holds(MetricHistory(now, self._past, self.config.over)):
            self._since = None
            return None
        self._since = step if self._since is None else self._since
        if step - self._since < self.config.lasting:
            return None
        if self._fired is not None and step - self._fired < self.config.quiet:
            return None
        self._fired = step
        return self._since

    def _forget(self, past: list[tuple[int, float]], step: int) -> None:
        """Of what is older than the window only the best is needed, to know whether anything improved."""
        old = [place for place, (when, _) in enumerate(past) if when <= step - self.config.over]
        if len(old) > 1:
            best = max(past[: len(old)], key=lambda pair: pair[1])
            past[: len(old)] = [best]
        del past[:-_MOST_REMEMBERED]

    def values(self, now: Mapping[str, float]) -> dict[str, float]:
        """The metrics that the condition reads, as they are now."""
        return {name: now[name] for name in sorted(self.condition.metrics) if name in now}

    def state(self) -> State:
        """When it fired, since when it holds, and the past."""
        past = {
            name: [list(pair) for pair in pairs] for name, pairs in self._past.items() if not name.startswith(PREFIX)
        }
        return {"when": self.config.when, "since": self._since, "fired": self._fired, "past": past}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue there."""
        self._since, self._fired = state["since"], state["fired"]
        for name, pairs in state["past"].items():
            self._past[name] = [(int(step), float(value)) for step, value in pairs]


def _joined(one: AlertDecision, other: AlertDecision) -> AlertDecision:
    """Both decisions in one; the earlier step where both ask for a rollback."""
    since = min(one.since, other.since) if one.rollback and other.rollback else max(one.since, other.since)
    return AlertDecision(one.stop or other.stop, one.rollback or other.rollback, since)


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
        return True


def _hint(name: str, now: Mapping[str, float]) -> str:
    names = sorted(KNOWN_METRICS | now.keys())
    return did_you_mean(name, names) or f"; there are: {', '.join(names)}."

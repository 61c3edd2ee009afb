"""Evaluates the alerts of a server every few seconds: shows them in the status, logs them and sends messages."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple, Protocol

from rl4sys.alerts import AlertCondition, AlertWatch, Notifications, require_notifications
from rl4sys.server.alert_config import SERVER_METRICS, ServerAlertConfig
from rl4sys.server.options import ServiceLimits

_log = logging.getLogger(__name__)

_SECONDS = 5.0
"""How often conditions are evaluated."""


class Measured(Protocol):
    """What the alerts read."""

    def of_server(self) -> dict[str, float]:
        """The metrics of the server."""

    def of_learners(self, limits: ServiceLimits) -> dict[str, dict[str, float]]:
        """The metrics of each learner, by its name."""


class AlertFiring(NamedTuple):
    """An alert whose condition holds."""

    name: str
    learner: str
    """The learner that it is about; empty if it is about the server."""
    text: str
    """What was measured, and what to do."""
    seconds: float
    """How long the condition has held."""


class ServerAlerts:
    """The alerts of one server. What they have seen is kept in memory, and begins with the server."""

    def __init__(
        self,
        measured: Measured,
        configs: Sequence[ServerAlertConfig],
        limits: ServiceLimits,
        clock: Callable[[], float],
        messages: Notifications | None = None,
    ) -> None:
        self._measured, self._clock = measured, clock
        self._messages = messages or Notifications()
        self._lock = threading.Lock()
        self._watched: dict[tuple[ServerAlertConfig, str], AlertWatch] = {}
        self._firing: dict[tuple[ServerAlertConfig, str], AlertFiring] = {}
        self._due = clock()
        self.use(configs, limits)

    def use(self, configs: Sequence[ServerAlertConfig], limits: ServiceLimits) -> None:
        """Evaluate these from now on; those that are as before keep what they have seen."""
        with self._lock:
            self._limits = limits
            self._of_server = [config for config in configs if is_about_server(config)]
            self._of_learners = [config for config in configs if not is_about_server(config)]
            self._keep(lambda config, _: config in configs)

    def firing(self) -> list[AlertFiring]:
        """The alerts that fire, those of the server first."""
        with self._lock:
            return sorted(self._firing.values(), key=lambda alert: (alert.learner, alert.name))

    def look(self) -> None:
        """Evaluate all of them, unless that was done a moment ago. Called every second."""
        time = self._clock()
        if time < self._due or not (self._of_server or self._of_learners):
            return
        self._due = time + _SECONDS
        server = self._measured.of_server()
        learners = self._measured.of_learners(self._limits) if self._of_learners else {}
        with self._lock:
            for config in self._of_server:
                self._evaluate(config, "", time, server)
            for name, metrics in learners.items():
                for config in self._of_learners:
                    if any(fnmatchcase(name, pattern) for pattern in config.learners):
                        self._evaluate(config, name, time, server | metrics)
            self._keep(lambda _, learner: not learner or learner in learners)

    def close(self) -> None:
        """Wait for messages that are on their way."""
        self._messages.close()

    def _evaluate(self, config: ServerAlertConfig, learner: str, time: float, metrics: Mapping[str, float]) -> None:
        key = (config, learner)
        watch = self._watched.get(key)
        if watch is None:
            watch = self._watched[key] = AlertWatch(config.when, config.over, config.lasting, config.quiet)
        acts = watch.fires(time, metrics, metrics)
        if watch.since is None or not watch.is_firing(time):
            if self._firing.pop(key, None) is not None and "log" in config.do:
                _log.info("The alert '%s'%s is over.", config.title, _about(learner))
            return
        shown = ", ".join(f"{name} is {value:g}" for name, value in watch.values(metrics).items())
        alert = AlertFiring(config.title, learner, " · ".join(filter(None, (shown, config.advice))), time - watch.since)
        self._firing[key] = alert
        if acts:
            self._act(config, alert)

    def _act(self, config: ServerAlertConfig, alert: AlertFiring) -> None:
        about = _about(alert.learner)
        if "log" in config.do:
            extra = {"alert": alert.name, "learner": alert.learner}
            _log.warning("Alert '%s'%s: %s", alert.name, about, alert.text, extra=extra)
        if "notify" in config.do:
            self._messages.send(f"RL4Sys: {alert.name}{about}", alert.text, config.notify)

    def _keep(self, wanted: Callable[[ServerAlertConfig, str], bool]) -> None:
        self._watched = {key: watch for key, watch in self._watched.items() if wanted(*key)}
        self._firing = {key: alert for key, alert in self._firing.items() if wanted(*key)}


def is_about_server(config: ServerAlertConfig) -> bool:
    """Whether an alert reads nothing of learners; else it is evaluated for each of them."""
    return AlertCondition(config.when).metrics <= SERVER_METRICS.keys()


def require_sound_alerts(configs: Sequence[ServerAlertConfig]) -> None:
    """Raise `ConfigError` unless messages can be sent."""
    addresses = [address for config in configs for address in config.notify]
    if addresses:
        require_notifications(addresses)


def _about(learner: str) -> str:
    return f" of learner {learner}" if learner else ""

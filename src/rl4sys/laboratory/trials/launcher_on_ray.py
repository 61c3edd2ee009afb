"""Runs trials on a Ray cluster: one actor per trial, which runs it in a process on its node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from rl4sys.collection.cluster_on_ray import join_cluster
from rl4sys.experiments.where import WhereSection
from rl4sys.laboratory.trials.distant_launch import DistantLaunch
from rl4sys.laboratory.trials.fit_on_ray import require_fit
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent, TrialLaunch
from rl4sys.laboratory.trials.trial_host import TrialHost, decode_events

_WAIT_SECONDS = 1.0
"""Seconds that an actor waits for the next event of its trial."""


@dataclass(slots=True)
class _Running:
    """A trial on the cluster."""

    distant: DistantLaunch
    host: Any
    """The actor."""
    pending: Any
    """The reply of the actor that is being waited for."""
    machine: str | None = None


class RayLauncher:
    """Starts one actor per launch. A trial whose process or node is lost continues on another node."""

    def __init__(self, where: WhereSection, count: int) -> None:
        """Join a cluster, or start Ray here, for so many launches."""
        self._where = where
        self._cpus = where.cpus or 1
        join_cluster(where.address)
        try:
            nodes = require_fit(where, self._cpus)
        except BaseException:
            ray.shutdown()
            raise
        fitting = sum(int(node["Resources"].get("CPU", 0)) // self._cpus for node in nodes)
        self._jobs = where.jobs or (count if where.autoscaling else max(1, min(count, fitting)))
        self._nodes = len(nodes)
        self._running: dict[str, _Running] = {}
        self._asked_to_stop = False
        options = {"num_cpus": self._cpus, "num_gpus": where.gpus, "max_restarts": 0, "max_concurrency": 2}
        self._actor = ray.remote(**options)(TrialHost)

    @property
    def has_free_slot(self) -> bool:
        """Whether fewer trials run than may run at once."""
        return len(self._running) < self._jobs

    @property
    def is_busy(self) -> bool:
        """Whether any trial is running."""
        return bool(self._running)

    def describe(self) -> str:
        """How many trials run at once, and where."""
        where = "Ray on this machine" if self._where.address is None else f"the Ray cluster at {self._where.address}"
        gpus = f" and {self._where.gpus:g} GPU" if self._where.gpus else ""
        plural = "s" * (self._nodes != 1)
        return f"{self._jobs} at a time with {self._cpus} CPU{gpus} each on {where} ({self._nodes} node{plural})"

    def start(self, launch: TrialLaunch) -> None:
        """Start a trial as soon as the cluster has room for it."""
        self._start(DistantLaunch(launch, self._cpus))

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        """What the trials reported, and which of them ended or were lost."""
        waiting = {running.pending: running for running in self._running.values()}
        ready, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=seconds)
        found: list[TrialEvent] = []
        for reference in ready:
            found += self._take(waiting[reference])
        return found

    def stop(self, key: str) -> None:
        """Ask one trial to save and end."""
        self._running[key].host.stop.remote()

    def ask_to_stop(self) -> None:
        """Ask every trial to save and end."""
        self._asked_to_stop = True
        for running in self._running.values():
            running.host.stop.remote()

    def close(self) -> None:
        """End the trials that still run, and leave the cluster; one that was started here ends."""
        for running in self._running.values():
            # Its process notices, saves and ends.
            ray.kill(running.host)
        self._running.clear()
        ray.shutdown()

    def _start(self, distant: DistantLaunch) -> None:
        host = self._actor.remote()
        self._running[distant.launch.key] = _Running(distant, host, host.start.remote(distant.order()))

    def _take(self, running: _Running) -> list[TrialEvent]:
        """The events in a reply; the next one is asked for unless the trial has ended."""
        key = running.distant.launch.key
        try:
            reply = ray.get(running.pending)
        except RayTaskError as error:
            # An error on the node, and not the loss of it: it would come again.
            return self._end(key, Outcome.FAILED, str(error.cause))
        except RayError as error:
            return self._lost(running, f"its node was lost ({type(error).__name__})")
        if running.machine is None:
            running.machine = str(reply)
            running.pending = running.host.events.remote(_WAIT_SECONDS)
            return []
        found: list[TrialEvent] = []
        for event in decode_events(reply):
            match event:
                case Reported():
                    found.append(running.distant.translate(event))
                case Ended(was_killed=True, cause=cause):
                    return [*found, *self._lost(running, f"{cause or 'its process was killed'}")]
                case Ended(outcome=outcome, cause=cause):
                    return [*found, *self._end(key, outcome, cause)]
        running.pending = running.host.events.remote(_WAIT_SECONDS)
        return found

    def _lost(self, running: _Running, how: str) -> list[TrialEvent]:
        """Continue a trial that was lost, unless that has happened too often."""
        key, distant = running.distant.launch.key, running.distant
        where = f" on {running.machine}" if running.machine else ""
        if self._asked_to_stop:
            return self._end(key, Outcome.STOPPED, None)
        if distant.losses >= self._where.retries:
            times = f"{distant.losses + 1} times" if distant.losses else "once"
            return self._end(key, Outcome.FAILED, f"{how}{where}; that happened {times}, and --retries allows no more")
        distant.losses += 1
        ray.kill(running.host)
        self._start(distant)
        return [Reported(key, {"warning": f"{how}{where}; it continues, attempt {distant.losses + 1}"})]

    def _end(self, key: str, outcome: Outcome, cause: str | None) -> list[TrialEvent]:
        running = self._running.pop(key)
        ray.kill(running.host)
        try:
            running.distant.bring_back()
        except OSError as error:
            url = running.distant.parts[0]["storage"]
            return [Ended(key, Outcome.FAILED, f"its run could not be copied here: {error}. Try: rl4sys pull {url}")]
        return [Ended(key, outcome, cause)]

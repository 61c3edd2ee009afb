"""Runs trials on a Ray cluster: one actor per trial, or per rank of it, which runs it in a process on its node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray

from rl4sys.collection.cluster_on_ray import join_cluster
from rl4sys.experiments.where import WhereSection
from rl4sys.laboratory.trials.actor_on_ray import TrialActor, end_processes
from rl4sys.laboratory.trials.distant_launch import DistantLaunch
from rl4sys.laboratory.trials.fit_on_ray import nodes_with_room, require_fit, require_room_here, slots
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent, TrialLaunch
from rl4sys.laboratory.trials.rank_actors_on_ray import RankActors
from rl4sys.laboratory.trials.trial_host import TrialHost


class _OneActor:
    """A trial in one process."""

    def __init__(self, distant: DistantLaunch, host: Any) -> None:
        self.distant, self.host = distant, host
        self._actor = TrialActor(distant.launch.key, host, distant.order())

    @property
    def machine(self) -> str | None:
        return self._actor.machine

    @property
    def pending(self) -> Sequence[Any]:
        return [self._actor.pending]

    @property
    def surviving_host(self) -> Any:
        """The actor, if only the process of the trial was lost."""
        return self.host if self._actor.is_alive else None

    def take(self, reference: Any) -> list[TrialEvent]:
        return self._actor.take()

    def conclude(self) -> list[Ended]:
        return []

    def stop(self) -> None:
        self._actor.stop()

    def discard(self) -> None:
        """End what was lost, with its files."""
        end_processes([self.host])

    def close(self) -> None:
        # Its process notices, saves and ends.
        ray.kill(self.host)


class RayLauncher:
    """Starts one actor per launch. A trial whose process or node is lost continues on another node."""

    def __init__(self, where: WhereSection, count: int, ranks: int = 1) -> None:
        """Join a cluster, or start Ray here, for so many launches, each with up to so many ranks."""
        self._where = where
        self._cpus, self._ranks = where.cpus or 1, ranks
        if where.address is None:
            require_room_here(where, self._cpus, ranks)
        join_cluster(where.address)
        self._running: dict[str, _OneActor | RankActors] = {}
        self._asked_to_stop = False
        options = {"num_cpus": self._cpus, "num_gpus": where.gpus, "max_restarts": 0, "max_concurrency": 2}
        self._host = ray.remote(**options)(TrialHost)
        try:
            nodes = nodes_with_room(where, self._cpus, ranks)
            fitting = sum(slots(node, self._cpus, where.gpus) for node in nodes) // ranks
            self._jobs = where.jobs or (count if where.autoscaling else max(1, min(count, fitting)))
            # Actors start, and import what trials need, while the nodes are asked what they are.
            early = 0 if ranks > 1 or where.autoscaling else min(self._jobs, count, fitting)
            self._idle: list[Any] = [self._host.remote(self._cpus) for _ in range(early)]
            require_fit(where, nodes)
        except BaseException:
            ray.shutdown()
            raise
        self._nodes = len(nodes)

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
        ranks = f"{self._ranks} ranks of " if self._ranks > 1 else ""
        return f"{self._jobs} at a time with {ranks}{self._cpus} CPU{gpus} each on {where} ({self._nodes} node{plural})"

    def start(self, launch: TrialLaunch) -> None:
        """Start a trial as soon as the cluster has room for it."""
        self._start(DistantLaunch(launch, self._cpus))

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        """What the trials reported, and which of them ended or were lost."""
        self._release_idle()
        waiting = {reference: running for running in self._running.values() for reference in running.pending}
        # The first reply is not kept waiting for the others.
        ray.wait(list(waiting), timeout=seconds)
        ready, _ = ray.wait(list(waiting), num_returns=len(waiting), timeout=0)
        found: list[TrialEvent] = []
        for reference in ready:
            running = waiting[reference]
            if running in self._running.values():
                found += self._handle(running, running.take(reference))
        for running in list(self._running.values()):
            found += self._handle(running, running.conclude())
        return found

    def stop(self, key: str) -> None:
        """Ask one trial to save and end."""
        self._running[key].stop()

    def ask_to_stop(self) -> None:
        """Ask every trial to save and end."""
        self._asked_to_stop = True
        for running in self._running.values():
            running.stop()

    def close(self) -> None:
        """End the trials that still run, and leave the cluster; one that was started here ends."""
        for running in self._running.values():
            running.close()
        self._running.clear()
        self._release_idle()
        ray.shutdown()

    def _start(self, distant: DistantLaunch, host: Any = None) -> None:
        """Start a trial: on an actor that is there, or on a new one."""
        running: _OneActor | RankActors
        if distant.launch.ranks > 1:
            running = RankActors(distant, self._cpus, self._where.gpus)
        else:
            running = _OneActor(distant, host or (self._idle.pop() if self._idle else self._host.remote(self._cpus)))
        self._running[distant.launch.key] = running

    def _handle(self, running: _OneActor | RankActors, events: Sequence[TrialEvent]) -> list[TrialEvent]:
        found: list[TrialEvent] = []
        for event in events:
            match event:
                case Reported():
                    found.append(running.distant.translate(event))
                case Ended(was_killed=True, cause=cause):
                    found += self._lost(running, f"{cause or 'its process was killed'}")
                case Ended(key, outcome, cause):
                    found += self._end(key, outcome, cause)
        return found

    def _lost(self, running: _OneActor | RankActors, how: str) -> list[TrialEvent]:
        """Continue a trial that was lost, unless that has happened too often."""
        key, distant = running.distant.launch.key, running.distant
        where = f" on {running.machine}" if running.machine else ""
        if self._asked_to_stop:
            return self._end(key, Outcome.STOPPED, None)
        if distant.losses >= self._where.retries:
            times = f"{distant.losses + 1} times" if distant.losses else "once"
            return self._end(key, Outcome.FAILED, f"{how}{where}; that happened {times}, and --retries allows no more")
        distant.losses += 1
        host = running.surviving_host if distant.losses == 1 else None
        if host is None:
            # Elsewhere, if there is room: where a process is killed again, memory may be short.
            running.discard()
        self._start(distant, host)
        return [Reported(key, {"warning": f"{how}{where}; it continues, attempt {distant.losses + 1}"})]

    def _end(self, key: str, outcome: Outcome, cause: str | None) -> list[TrialEvent]:
        running = self._running.pop(key)
        if isinstance(running, _OneActor) and outcome is Outcome.FINISHED:
            # The next trial starts sooner in a process that is there.
            self._idle.append(running.host)
        else:
            running.close()
        try:
            running.distant.bring_back()
        except OSError as error:
            url = running.distant.parts[0]["storage"]
            return [Ended(key, Outcome.FAILED, f"its run could not be copied here: {error}. Try: rl4sys pull {url}")]
        return [Ended(key, outcome, cause)]

    def _release_idle(self) -> None:
        """End actors that no further trial has taken, so that the cluster can use their cores or end their nodes."""
        for host in self._idle:
            ray.kill(host)
        self._idle.clear()

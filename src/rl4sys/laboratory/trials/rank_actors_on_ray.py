"""The ranks of one trial on a Ray cluster: as many actors, which start and end together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.util.placement_group import placement_group, placement_group_table, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from rl4sys.laboratory.trials.actor_on_ray import TrialActor, end_processes
from rl4sys.laboratory.trials.distant_launch import DistantLaunch
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent
from rl4sys.laboratory.trials.trial_host import TrialHost

_GRACE = 5.0
"""Seconds to wait for the rank that died, once another one has lost the connection to it."""


class RankActors:
    """One actor for each rank. Rank 0 starts first and says where it is reached; the death of one ends all."""

    def __init__(self, distant: DistantLaunch, cpus: int, gpus: float) -> None:
        self.distant = distant
        self._cpus, self._gpus = cpus, gpus
        bundle = {"CPU": float(cpus)} | ({"GPU": gpus} if gpus else {})
        # All or none of them get their cores, so that two trials never wait for each other with half of their ranks.
        self._group = placement_group([bundle] * distant.launch.ranks, strategy="PACK")
        self._room: Any = self._group.ready()
        self._hosts: list[Any] = []
        self._addresses: list[str] = []
        self._actors: dict[int, TrialActor] = {}
        self._endings: dict[int, Ended] = {}
        self._left: dict[int, float] = {}

    @property
    def machine(self) -> str | None:
        """Where rank 0 runs, once it has started."""
        return self._actors[0].machine if 0 in self._actors else None

    @property
    def pending(self) -> Sequence[Any]:
        """The replies that are being waited for."""
        if self._room is not None:
            return [self._room]
        return [actor.pending for actor in self._actors.values() if actor.pending is not None]

    @property
    def surviving_host(self) -> None:
        """None: ranks begin again together."""

    def take(self, reference: Any) -> list[TrialEvent]:
        """The events in a reply; the last one is an `Ended` if the trial has ended or was lost."""
        if reference == self._room:
            self._begin()
            return []
        rank, actor = next(item for item in self._actors.items() if item[1].pending == reference)
        found: list[TrialEvent] = []
        for event in actor.take():
            match event:
                case Ended():
                    self._endings[rank] = event
                case Reported(values={"port": port}):
                    if rank == 0:
                        self._join(int(port))
                case Reported(values={"rank_lost": _}):
                    # It ends only because another one has.
                    self._left[rank] = time.monotonic()
                case Reported(values=values) if rank == 0 or "warning" in values:
                    found.append(event)
        return [*found, *self.conclude()]

    def conclude(self) -> list[Ended]:
        """How the trial ended, if it has."""
        first = self._endings.get(0)
        if first is not None and first.outcome is not Outcome.FAILED:
            return [first]
        failed = {rank: ended for rank, ended in self._endings.items() if ended.outcome is Outcome.FAILED}
        died = [(rank, ended) for rank, ended in failed.items() if rank not in self._left]
        if died:
            rank, ended = died[0]
            return [Ended(ended.key, Outcome.FAILED, f"rank {rank}: {ended.cause}", ended.was_killed)]
        if self._left and time.monotonic() - min(self._left.values()) > _GRACE:
            cause = "its ranks lost the connection to each other"
            return [Ended(self.distant.launch.key, Outcome.FAILED, cause, was_killed=True)]
        return []

    def stop(self) -> None:
        """Ask rank 0 to save and end, and with it the others."""
        if 0 in self._actors:
            self._actors[0].stop()

    def discard(self) -> None:
        """End what is left of ranks that were lost, with their files."""
        self.close()

    def close(self) -> None:
        """End all ranks at once."""
        end_processes(self._hosts)
        remove_placement_group(self._group)

    def _begin(self) -> None:
        """Make all actors, now that there is room, and start rank 0."""
        self._room = None
        addresses = {node["NodeID"]: str(node["NodeManagerAddress"]) for node in ray.nodes()}
        nodes = placement_group_table(self._group)["bundles_to_node_id"]
        for rank in range(self.distant.launch.ranks):
            strategy = PlacementGroupSchedulingStrategy(self._group, placement_group_bundle_index=rank)
            options = {"num_cpus": self._cpus, "num_gpus": self._gpus, "scheduling_strategy": strategy}
            self._hosts.append(ray.remote(max_restarts=0, max_concurrency=2, **options)(TrialHost).remote(self._cpus))
            self._addresses.append(addresses[nodes[rank]])
        self._start(0, 0)

    def _join(self, port: int) -> None:
        for rank in range(1, self.distant.launch.ranks):
            self._start(rank, port)

    def _start(self, rank: int, port: int) -> None:
        is_one_machine = len(set(self._addresses)) == 1
        # Ray shows each actor its own GPUs only, so each rank has the first that it sees.
        place = {
            "rank": rank,
            "ranks": self.distant.launch.ranks,
            "host": "127.0.0.1" if is_one_machine else self._addresses[0],
            "port": port,
        }
        order = self.distant.order({"place": place, "address": self._addresses[rank]})
        self._actors[rank] = TrialActor(self.distant.launch.key, self._hosts[rank], order)

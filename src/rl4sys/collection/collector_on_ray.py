"""Collects in Ray actors, on any node of a cluster, what the processes of a pooled source would collect here."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayActorError, RayTaskError

from rl4sys.checkpoints import decode_state, encode_state
from rl4sys.collection.pipeline import PipelineSetup, WorkerFailed
from rl4sys.collection.remote_collector import RemoteCollector
from rl4sys.collection.rollout import Rollout
from rl4sys.collection.source import Collected
from rl4sys.environments import EpisodeSummary
from rl4sys.state import State, require
from rl4sys.weights import Version

_log = logging.getLogger(__name__)

_MOST_LOSSES = 100
"""Samplers that may be lost in a row before the run gives up."""


class RaySource:
    """One sampler, whose rollout is always under way while the learner works, as that of a pipelined source.

    A sampler that is lost is replaced: the new one starts from the state after the last rollout that arrived, and is
    asked for the same rollout again, with the same version.
    """

    def __init__(self, setup: PipelineSetup, plugins: Mapping[str, str]) -> None:
        self._client = setup.client
        self._specs = Rollout.specs(setup.policy, setup.environment.num_envs, setup.steps)
        self._arguments = json.dumps(setup.message()), json.dumps(dict(plugins))
        # One core each. Ray must not restart it by itself, because it would begin from the start.
        self._actor = ray.remote(num_cpus=1, max_restarts=0)(RemoteCollector)
        self._sampler = self._actor.remote(*self._arguments)
        self._after: bytes | None = None
        self._request: tuple[int, bytes] | None = None
        self._reply: Any = None
        self._pending: tuple[Rollout, list[EpisodeSummary]] | None = None

    def collect(self, newest: Version) -> Collected:
        """Hand over the finished rollout, having started the next one."""
        if self._request is None and self._pending is None:
            self._start(newest)
        rollout, episodes = self._finished()
        self._start(newest)
        return Collected(list(rollout.segments(self._client)), episodes)

    def state(self) -> State:
        """The rollout in flight, once it has arrived, and where every lane is after it: as of a pipelined source."""
        if self._request is not None:
            self._pending = self._finished()
        pending: State | None = None
        if self._pending is not None:
            rollout, episodes = self._pending
            rollout.require_finite()
            columns = {name: column.copy() for name, column in rollout.columns.items()}
            pending = {"columns": columns, "episodes": [episode.to_fields() for episode in episodes]}
        if self._after is None:
            self._after = self._ask("state")
        return {"collector": decode_state(self._after)["collector"], "pending": pending}

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        require(state, "collector", "pending")
        if self._request is not None:
            # It belongs to the history that is left.
            self._finished()
        self._after = encode_state({"collector": state["collector"]})
        inexact: list[str] = json.loads(self._ask("restore", self._after))
        self._pending = None
        if state["pending"] is not None:
            episodes = [EpisodeSummary.from_fields(fields) for fields in state["pending"]["episodes"]]
            self._pending = self._rollout_of(state["pending"]["columns"]), episodes
        return inexact

    def close(self) -> None:
        """End the sampler."""
        ray.kill(self._sampler)

    def _start(self, version: Version) -> None:
        self._request = version.number, version.blob.tobytes()
        self._reply = self._sampler.collect.remote(*self._request)

    def _finished(self) -> tuple[Rollout, list[EpisodeSummary]]:
        if self._pending is not None:
            pending, self._pending = self._pending, None
            return pending
        rollout, self._after = self._wait()
        self._request = None
        reply = decode_state(rollout)
        return self._rollout_of(reply["columns"]), [EpisodeSummary.from_fields(fields) for fields in reply["episodes"]]

    def _wait(self) -> tuple[bytes, bytes]:
        """The reply to the request in flight; asked again of another sampler if this one is lost."""
        for _ in range(_MOST_LOSSES):
            try:
                reply: tuple[bytes, bytes] = ray.get(self._reply)
            except RayActorError as error:
                self._replace(error)
                assert self._request is not None
                self._reply = self._sampler.collect.remote(*self._request)
                continue
            except RayTaskError as error:
                raise WorkerFailed(f"A sampler failed: {_cause(error)}") from error
            return reply
        raise WorkerFailed(f"{_MOST_LOSSES} samplers were lost in a row. Check the nodes, then resume the run.")

    def _ask(self, method: str, *arguments: Any) -> Any:
        """A reply at once; from another sampler if this one is lost."""
        for _ in range(_MOST_LOSSES):
            try:
                return ray.get(getattr(self._sampler, method).remote(*arguments))
            except RayActorError as error:
                self._replace(error)
            except RayTaskError as error:
                raise WorkerFailed(f"A sampler failed: {_cause(error)}") from error
        raise WorkerFailed(f"{_MOST_LOSSES} samplers were lost in a row. Check the nodes, then resume the run.")

    def _replace(self, error: RayActorError) -> None:
        """Start another sampler where the lost one was before its last request."""
        _log.warning("A sampler was lost (%s); another one takes over.", type(error).__name__)
        self._sampler = self._actor.remote(*self._arguments)
        if self._after is not None:
            for reason in json.loads(self._ask("restore", self._after)):
                _log.warning("The new sampler continues, not exact: %s", reason)

    def _rollout_of(self, columns: Mapping[str, Any]) -> Rollout:
        rollout = Rollout.allocate(self._specs)
        for name, column in rollout.columns.items():
            np.copyto(column, columns[name])
        return rollout


def _cause(error: RayTaskError) -> str:
    cause = error.cause if isinstance(error.cause, Exception) else error
    return f"{type(cause).__name__}: {str(cause).strip().splitlines()[-1]}"

"""Collects the next rollout in one or several other processes while the learner works on the last one."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from rl4sys.collection.shared_memory import SharedLayout, anonymous_memory
from rl4sys.collection.source import CLIENT, Collected
from rl4sys.environments import ENVIRONMENTS, EnvironmentConfig, EpisodeSummary, Grade
from rl4sys.policy import NUMPY, PolicySpec
from rl4sys.seeding import Seeds
from rl4sys.state import State, from_text, require, to_text
from rl4sys.weights import Version


class WorkerFailed(RuntimeError):
    """The collecting process raised, or ended."""


@dataclass(frozen=True, slots=True)
class PipelineSetup:
    """What the collecting process needs to build the same environments and policy."""

    environment: EnvironmentConfig
    policy: PolicySpec
    steps: int
    seed: int
    noise_seed: int
    grade: Grade
    plugins: Sequence[str]
    directory: Path
    """What the paths of plug-ins are relative to."""
    client: str = CLIENT
    """Names the streams of its lanes."""
    kernels: str = NUMPY
    """The kernel set that runs the policy."""

    def message(self) -> dict[str, Any]:
        """The first line that the worker reads."""
        return {
            "environment": ENVIRONMENTS.dump(self.environment),
            "policy": self.policy.to_json(),
            "steps": self.steps,
            "seed": self.seed,
            "noise_seed": self.noise_seed,
            "grade": self.grade.name,
            "plugins": list(self.plugins),
            "directory": str(self.directory),
            "client": self.client,
            "kernels": self.kernels,
        }


class PipelinedSource:
    """Acting and learning overlap, with a fixed lag: every rollout but the first is one version old.

    Turn k hands over rollout k and starts rollout k+1 with the version that came of rollout k−1. That order never
    depends on timing, so runs are reproducible, and a checkpoint holds the rollout in flight.
    """

    def __init__(self, setup: PipelineSetup) -> None:
        self._client = setup.client
        self._layout = SharedLayout(setup.policy, setup.environment.num_envs, setup.steps)
        descriptor = anonymous_memory(self._layout.size())
        request_end, requests = os.pipe()
        replies, reply_end = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "rl4sys.collection.worker",
                *map(str, (request_end, reply_end, descriptor)),
            ],
            pass_fds=(request_end, reply_end, descriptor),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # One core each: the worker must not take the learner's.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )
        os.close(request_end)
        os.close(reply_end)
        self._outgoing = os.fdopen(requests, "wb", buffering=0)
        self._incoming = os.fdopen(replies, "r")
        self._memory = mmap.mmap(descriptor, 0)
        os.close(descriptor)
        self._weights, self._rollouts = self._layout.map(self._memory)
        self._block = 0
        self._in_flight = False
        self._pending: list[EpisodeSummary] | None = None
        try:
            self._ask(setup.message())
        except BaseException:
            # No caller gets this source, so it must be closed here.
            self.close()
            raise

    def collect(self, newest: Version) -> Collected:
        """Hand over the finished rollout, having started the next one."""
        if not self._in_flight and self._pending is None:
            self._start(newest, self._block)
        episodes = self._finished()
        ready = self._rollouts[self._block]
        self._block = 1 - self._block
        self._start(newest, self._block)
        return Collected(list(ready.segments(self._client)), episodes)

    def state(self) -> State:
        """The rollout in flight, once it has arrived, and where every lane is after it."""
        if self._in_flight:
            self._pending = self._finished()
        pending: State | None = None
        if self._pending is not None:
            rollout = self._rollouts[self._block]
            # Before it is saved: a checkpoint with such numbers could never be resumed.
            rollout.require_finite()
            columns = rollout.columns
            pending = {
                "columns": {name: column.copy() for name, column in columns.items()},
                "episodes": [episode.to_fields() for episode in self._pending],
            }
        reply = self._ask({"state": True})
        return {"collector": from_text(reply["state"]), "pending": pending}

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        require(state, "collector", "pending")
        if self._in_flight:
            # It belongs to the history that is left.
            self._finished()
        reply = self._ask({"restore": to_text(state["collector"])})
        self._pending = None
        if state["pending"] is not None:
            for name, column in self._rollouts[self._block].columns.items():
                np.copyto(column, state["pending"]["columns"][name])
            self._pending = [EpisodeSummary.from_fields(fields) for fields in state["pending"]["episodes"]]
        inexact: list[str] = reply["inexact"]
        return inexact

    def close(self) -> None:
        """End the worker: it leaves when its pipe closes. Closing again does nothing."""
        self._outgoing.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._incoming.close()

    def _start(self, version: Version, block: int) -> None:
        np.copyto(self._weights, version.blob)
        self._send({"collect": {"version": version.number, "block": block}})
        self._in_flight = True

    def _finished(self) -> list[EpisodeSummary]:
        if self._pending is not None:
            episodes, self._pending = self._pending, None
            return episodes
        reply = self._receive()
        self._in_flight = False
        return [EpisodeSummary.from_fields(fields) for fields in reply["episodes"]]

    def _ask(self, message: dict[str, Any]) -> dict[str, Any]:
        self._send(message)
        return self._receive()

    def _send(self, message: dict[str, Any]) -> None:
        line = memoryview((json.dumps(message) + "\n").encode())
        try:
            while line:
                line = line[self._outgoing.write(line) :]
        except BrokenPipeError:
            self._receive()

    def _receive(self) -> dict[str, Any]:
        line = self._incoming.readline()
        if not line.endswith("\n"):
            code = self._process.wait()
            raise WorkerFailed(
                f"The collecting process ended with code {code}. Resume the run, or set training.pipelined=false "
                f"to see the error in this process."
            )
        reply: dict[str, Any] = json.loads(line)
        if "error" in reply:
            raise WorkerFailed(f"The collecting process failed: {reply['error']}")
        return reply


class ShareSource(Protocol):
    """A source that collects in one other process."""

    def collect(self, newest: Version) -> Collected:
        """Hand over the finished rollout, having started the next one."""

    def state(self) -> State:
        """The rollout in flight, and where every lane is after it."""

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact."""

    def close(self) -> None:
        """End the process."""


class PooledSource:
    """Several collecting processes side by side, for environments that are slower than the learner.

    Each has its share of the lanes. What they collect is put together in a fixed order, so runs are as reproducible as
    with one process, and as old: every rollout but the first lags by one version.
    """

    def __init__(
        self, setup: PipelineSetup, processes: int, make: Callable[[PipelineSetup], ShareSource] = PipelinedSource
    ) -> None:
        """`make` starts one process with its share of the lanes, here or on another machine."""
        self._lanes = setup.environment.num_envs // processes
        self._sources: list[ShareSource] = []
        try:
            for number in range(processes):
                self._sources.append(make(share_of(setup, number, processes)))
        except BaseException:
            # No caller gets this source, so it must be closed here.
            self.close()
            raise

    def collect(self, newest: Version) -> Collected:
        """Hand over the finished rollouts, having started the next ones."""
        parts = [source.collect(newest) for source in self._sources]
        episodes = [
            episode._replace(lane=number * self._lanes + episode.lane)
            for number, part in enumerate(parts)
            for episode in part.episodes
        ]
        return Collected([segment for part in parts for segment in part.segments], episodes)

    def state(self) -> State:
        """Those of all processes, by number."""
        return {str(number): source.state() for number, source in enumerate(self._sources)}

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        require(state, *map(str, range(len(self._sources))))
        return [reason for number, source in enumerate(self._sources) for reason in source.restore(state[str(number)])]

    def close(self) -> None:
        """End all of them."""
        for source in self._sources:
            source.close()


def share_of(setup: PipelineSetup, number: int, processes: int) -> PipelineSetup:
    """The setup of one process: its share of the lanes, with its own seeds and streams."""
    lanes = setup.environment.num_envs // processes
    return replace(
        setup,
        environment=setup.environment.model_copy(update={"num_envs": lanes}),
        seed=Seeds(setup.seed).integer("collector", number),
        client=f"{setup.client}-{number}",
    )

"""A policy at one version: never changed, only replaced by reference."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from rl4sys.policy import NumpyPolicy, PolicySpec
from rl4sys.weights import Flat
from rl4sys.wire import SegmentFormat


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Everything that a decision needs. Two are the same only if they are one object."""

    spec: PolicySpec
    form: SegmentFormat
    """How what it records travels; one object for as long as the schema stays the same."""
    schema_hash: bytes
    learner: str
    version: int
    weights: Flat
    """Read-only."""
    max_steps: int
    """Of one segment, for the server to take it."""


class Newest:
    """Holds the snapshot to act with. Reading it is one attribute; whoever publishes replaces it whole."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.since = 0.0
        """When it was published, by the clock of the publisher."""
        self._published = threading.Condition()

    def publish(self, snapshot: Snapshot, now: float) -> None:
        """Decisions that begin from now on use this one."""
        with self._published:
            self.snapshot, self.since = snapshot, now
            self._published.notify_all()

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._published:
            self._published.notify_all()

    def wait(self, seconds: float) -> None:
        """Until something is published or `wake` is called."""
        with self._published:
            if self.snapshot is None:
                self._published.wait(seconds)


class ThreadPolicies:
    """A policy runtime for each thread that acts, since one runtime serves one thread at a time."""

    def __init__(self) -> None:
        self._local = _Held()

    def at(self, snapshot: Snapshot) -> NumpyPolicy:
        """This thread's runtime, with the weights of the snapshot."""
        held = self._local
        if held.snapshot is snapshot and held.policy is not None:
            return held.policy
        if held.policy is None or held.snapshot is None or held.snapshot.spec is not snapshot.spec:
            held.policy = NumpyPolicy(snapshot.spec, snapshot.weights)
        else:
            held.policy.load(snapshot.weights)
        held.snapshot = snapshot
        return held.policy


class _Held(threading.local):
    snapshot: Snapshot | None = None
    policy: NumpyPolicy | None = None

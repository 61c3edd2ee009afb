"""Immutable snapshots of a policy, and the newest one that all threads act with."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from rl4sys.policy import NumpyPolicy, PolicySpec
from rl4sys.weights import Flat
from rl4sys.wire import SegmentFormat


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A policy at one version, with everything that a decision needs. Compared by identity."""

    spec: PolicySpec
    form: SegmentFormat
    """The format of its segments; the same object for as long as the schema stays the same."""
    schema_hash: bytes
    learner: str
    version: int
    weights: Flat
    """Read-only."""
    max_steps: int
    """Most steps of one segment that the server accepts."""


class NewestSnapshot:
    """Holds the snapshot to act with. Readers take one reference; publishing replaces it."""

    def __init__(self) -> None:
        self.snapshot: Snapshot | None = None
        self.since = 0.0
        """When it was published, by the publisher's clock."""
        self._published = threading.Condition()

    def publish(self, snapshot: Snapshot, now: float) -> None:
        """Replace the snapshot; later decisions use this one."""
        with self._published:
            self.snapshot, self.since = snapshot, now
            self._published.notify_all()

    def wake(self) -> None:
        """Wake all waiting threads."""
        with self._published:
            self._published.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until something is published or `wake` is called."""
        with self._published:
            if self.snapshot is None:
                self._published.wait(seconds)


class ThreadPolicies:
    """One `NumpyPolicy` per acting thread, since a policy serves one thread at a time."""

    def __init__(self) -> None:
        self._local = _Held()

    def at(self, snapshot: Snapshot) -> NumpyPolicy:
        """The policy of this thread, with the weights of the snapshot."""
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

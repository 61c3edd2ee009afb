"""Immutable snapshots of a policy, and the runtime that each acting thread has for them."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.policy import NUMPY, RunningPolicy, run_policy
from rl4sys.weights import Flat
from rl4sys.wire import SegmentFormat


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A policy at one version, with everything that a decision needs. Compared by identity."""

    interface: PolicyInterface
    schema_hash: bytes
    learner: str
    version: int
    weights: Flat
    """Read-only."""
    max_steps: int
    """Most steps of one segment that the server accepts."""
    lineage: str = ""
    """Identifies the history of the weights; empty from servers that know no lineages."""

    @property
    def form(self) -> SegmentFormat:
        """The format of its segments; the same object for as long as the schema stays the same."""
        return self.interface.form


class ThreadPolicies:
    """One policy per acting thread, since a policy serves one thread at a time."""

    def __init__(self, kernels: str = NUMPY) -> None:
        self.kernels = kernels
        """The kernel set that they run with."""
        self._local = _Held()

    def at(self, snapshot: Snapshot) -> RunningPolicy:
        """The policy of this thread, with the weights of the snapshot."""
        held = self._local
        if held.snapshot is snapshot and held.policy is not None:
            return held.policy
        if held.policy is None or held.snapshot is None or held.snapshot.interface is not snapshot.interface:
            held.policy = run_policy(snapshot.interface.policies.acting, snapshot.weights, self.kernels)
        else:
            held.policy.load(snapshot.weights)
        held.snapshot = snapshot
        return held.policy


class _Held(threading.local):
    snapshot: Snapshot | None = None
    policy: RunningPolicy | None = None

"""Lets the native extension take the decisions of the common case: observation in, recorded action out, in one call.

Python stays in charge of everything else. The path of an episode is opened for as many decisions as nothing else is
due, for example until the present segment is full. Taking the lock of the record closes the path; until then, the next
rows of the segment belong to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rl4sys.client.decision_times import SAMPLED, DecisionTimes
from rl4sys.experience import Array, DecidedBy
from rl4sys.policy import MASK, BoxAction, DiscreteAction, NativePolicy, layout_of, native_extension, row_policy

if TYPE_CHECKING:
    from rl4sys.client.acting_plan import ActingPlan
    from rl4sys.client.episode_record import EpisodeRecord
    from rl4sys.client.lane import Lane
    from rl4sys.client.policy_interface import PolicyInterface
    from rl4sys.client.snapshot import Snapshot

_MOST_WEIGHTS = 1 << 16
"""Larger policies decide without Python's global lock, one in each thread, so that other threads run meanwhile."""
_HEAVY = frozenset({"conv2d", "attention"})
"""Ops that take long with few weights."""
_NO_MEMORY: tuple[Any, ...] = ()


class Plans(Protocol):
    """Holds the present plan."""

    plan: ActingPlan


class Lockable(Protocol):
    """A lock that can be asked whether it is held."""

    def locked(self) -> bool:
        """Whether it is held."""


class NativeActing:
    """What the native paths of all episodes of an agent share. Used under Python's global lock."""

    def __init__(self, kernels: str, plans: Plans, times: DecisionTimes) -> None:
        """`kernels`: the set of kernels, such as `avx2`."""
        self._extension = native_extension()
        self._kernels = kernels
        self._plans = plans
        self._context = self._extension.ActContext(plans, times.add, SAMPLED)
        self._interface: PolicyInterface | None = None
        self._form: Any = None
        self._policy: Any = None
        self._snapshot: Snapshot | None = None

    def noise_rows(self, keys: Sequence[int], steps: Sequence[int], size: int) -> Array:
        """The noise [streams, size] of one step of each stream, by the key of its noise."""
        rows = np.empty((len(keys), size), np.float32)
        self._extension.noise_rows(keys, steps, rows)
        return rows

    def begin(self, record: EpisodeRecord, lane: Lane, lock: Lockable) -> Any:
        """Begin an episode that has not observed anything: a path for its first decisions, or None without one.

        The lock of the record is held.
        """
        plan = self._plans.plan
        snapshot = plan.snapshot
        if snapshot is None or plan.asks or plan.decided_by is not DecidedBy.POLICY or not self._uses(snapshot):
            return None
        record.begin_first(plan, snapshot)
        return self.open(None, record, lane, lock)

    def open(self, path: Any, record: EpisodeRecord, lane: Lane, lock: Lockable) -> Any:
        """Give the next rows of the record to the path of its episode; returns the path, a new one if there was none.

        The lock of the record is held.
        """
        buffer, plan = record.buffer, self._plans.plan
        if buffer is None or buffer.acting is not plan or record.now is not None:
            return path
        room, takable = record.next_change() - record.decisions, record.takable
        if takable <= 0 and buffer.recorded and not buffer.count:
            # Every step was taken out, and it is time to ask whether to record the next ones.
            return path
        snapshot = buffer.snapshot
        if room <= 0 or snapshot is not plan.snapshot or not self._uses(snapshot):
            return path
        if buffer.native_columns is None:
            names = [array.name for array in snapshot.interface.policies.acting.observation]
            action, log_prob = buffer.decision_columns
            observed = tuple([buffer.observation[name] for name in names])
            buffer.native_columns = self._extension.Columns(self._form, observed, action, buffer.reward, log_prob)
        if path is None:
            path = self._extension.ActPath(self._context, lane.noise.key)
        memory = tuple(record.carry.values()) if record.carry else _NO_MEMORY
        path.open(
            *(self._form, self._rows(snapshot), buffer.native_columns, memory, plan, lock.locked),
            *(buffer.count, room, record.decisions, lane.decisions, takable),
        )
        return path

    def _uses(self, snapshot: Snapshot) -> bool:
        """Whether the paths decide with this policy; false for large ones, and for candidates."""
        interface = snapshot.interface
        if interface is not self._interface:
            self._interface, self._policy, self._form = interface, None, None
            if interface.is_local and interface.reader.candidates is None and _is_light(interface):
                self._policy = row_policy(interface.policies.acting, self._kernels)
                self._form = self._form_of(interface)
            self._snapshot = None
        return self._form is not None

    def _rows(self, snapshot: Snapshot) -> Any:
        """The policy with the weights of the snapshot."""
        if snapshot is not self._snapshot:
            self._policy.load(np.ascontiguousarray(snapshot.weights, np.float32))
            self._snapshot = snapshot
        return self._policy

    def _form_of(self, interface: PolicyInterface) -> Any:
        """How usual observations are read, and actions returned."""
        spec = interface.policies.acting
        schema = interface.form.schema
        inputs = [(array.name, array.dtype, array.shape) for array in spec.observation]
        mask = MASK if any(name == MASK for name, _, _ in inputs) else None
        kind, start, low, high = "other", 0, _NO_MEMORY, _NO_MEMORY
        if interface.is_plain and isinstance(spec.action, DiscreteAction):
            kind, start = "choice", spec.action.start
        elif interface.is_plain and isinstance(spec.action, BoxAction):
            kind, low, high = "numbers", spec.action.low, spec.action.high
        action = (schema.action.name, schema.action.dtype, schema.action.shape)
        bounds = (_numbers(low), _numbers(high))
        return self._extension.ActForm(inputs, mask, action, kind, start, *bounds, interface.actions.finish)


def _is_light(interface: PolicyInterface) -> bool:
    spec = interface.policies.acting
    if not NativePolicy.can_run(spec) or layout_of(spec.program).size > _MOST_WEIGHTS:
        return False
    return not any(op.kind in _HEAVY for op in spec.program.ops)


def _numbers(values: Sequence[float]) -> list[float]:
    return [float(value) for value in values]

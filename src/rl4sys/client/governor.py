"""Makes the acting plan from the newest policy, the operator's order, the kill file, the lease and the lineage."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.acting_plan import ActingPlan
from rl4sys.client.client_level import ClientLevel
from rl4sys.client.control_order import ControlMode, ControlOrder
from rl4sys.client.shared_session import OpenSession
from rl4sys.client.snapshot import Snapshot
from rl4sys.experience import DecidedBy

_log = logging.getLogger(__name__)


class Governor:
    """Holds the present plan. Acting threads read it by reference; background threads change what it is made of."""

    def __init__(
        self,
        mode: ActingMode = ActingMode.EXPLORE,
        order: ControlOrder | None = None,
        on_order: Callable[[ControlOrder], None] | None = None,
        *,
        asks: bool = False,
    ) -> None:
        """`order`: the latest order of an earlier start. `on_order` is called with each later one. `asks`: whether the
        policy decides on the server."""
        self._asks = asks
        self.plan = ActingPlan()
        self.since = 0.0
        """When the present version was published, by the publisher's clock."""
        self.cached: Snapshot | None = None
        """The policy of an earlier start, until there is another one to act with."""
        self.record_share = 1.0
        """The share of episodes to record."""
        self.lineage_problem: str | None = None
        """Why the server's versions are not followed; None if they are."""
        self._mode = mode
        self._level = ClientLevel.FULL
        self._order = order or ControlOrder()
        self._on_order = on_order
        self._snapshot: Snapshot | None = None
        self._kill_file = self._lease_over = False
        self._accepts_fallback = self._accepts_incumbent = False
        self._changed = threading.Condition()
        with self._changed:
            self._replan()

    @property
    def snapshot(self) -> Snapshot | None:
        """The policy that is acted with."""
        return self._snapshot

    @property
    def known(self) -> Snapshot | None:
        """The policy that is acted with, or else that of an earlier start."""
        return self._snapshot or self.cached

    @property
    def order(self) -> ControlOrder:
        """The latest order of an operator."""
        return self._order

    @property
    def level(self) -> ClientLevel:
        """How much of the client works."""
        return self._level

    @level.setter
    def level(self, level: ClientLevel) -> None:
        with self._changed:
            self._level = level
            self._replan()

    @property
    def keeps_version(self) -> bool:
        """Whether the present version may not be replaced: an operator froze it, the learner has another lineage, or a
        profile measures a level that takes no versions."""
        is_frozen = self._order.mode is ControlMode.FROZEN or self._level is not ClientLevel.FULL
        return (is_frozen and self.known is not None) or self.lineage_problem is not None

    def publish(self, snapshot: Snapshot, now: float) -> None:
        """Replace the policy; later decisions use this one."""
        with self._changed:
            self._snapshot, self.since, self.cached = snapshot, now, None
            self._replan()

    def use_cached(self, now: float) -> bool:
        """Act with the policy of an earlier start, unless there is another one; false if there is none at all."""
        with self._changed:
            if self._snapshot is None and self.cached is not None:
                self._snapshot, self.since, self.cached = self.cached, now, None
                self._replan()
            return self._snapshot is not None

    def joined(self, opened: OpenSession) -> None:
        """Take what the reply to Join says. Called for every join, by the thread that joined."""
        present = self.known
        is_foreign = present is not None and not opened.continues(present)
        problem = None
        if present is not None and is_foreign:
            problem = (
                f"The learner '{opened.session.learner}' has lineage {opened.lineage}; this client acts with version "
                f"{present.version} of {present.lineage}, whose history the server lost or replaced. The client keeps "
                f"its policy and records nothing. Restore a backup of the server, or accept the new lineage there."
            )
        with self._changed:
            is_new = problem != self.lineage_problem
            self.lineage_problem = problem
            self._accepts_fallback, self._accepts_incumbent = opened.accepts_fallback, opened.accepts_incumbent
            self.record_share = opened.record_share
            self._replan()
        if is_new and problem is not None:
            _log.error("%s", problem)
        elif is_new:
            _log.info("The learner '%s' continues or replaces the lineage of this client.", opened.session.learner)
        if opened.order is not None:
            self.obey(opened.order)

    def without_answer(self, plan: ActingPlan) -> ActingPlan:
        """The plan for a decision that the server did not answer: the fallback takes it."""
        records = plan.records and self._accepts_fallback
        return plan._replace(off="no_answer", decided_by=DecidedBy.FALLBACK, records=records)

    def of_incumbent(self) -> ActingPlan:
        """The plan for a decision that the system took by itself."""
        plan = self.plan
        records = self._mode is ActingMode.EXPLORE and self.lineage_problem is None and self._accepts_incumbent
        records = records and self._level.records
        return plan._replace(off="", decided_by=DecidedBy.INCUMBENT, records=records, observes=False)

    def ask_share(self, share: float) -> None:
        """Take the share of episodes that the server asks to record."""
        self.record_share = share

    def obey(self, order: ControlOrder) -> bool:
        """Obey an order that is later than every one before; false for any other."""
        with self._changed:
            if order.sequence <= self._order.sequence:
                return False
            changed, self._order = order.mode is not self._order.mode, order
            self._replan()
        if changed:
            _log.warning("An operator ordered %s.", order)
        # Obeyed before it is written: a slow disk must not delay it, and the server repeats it at the next join.
        if self._on_order is not None:
            self._on_order(order)
        return True

    def set_kill_file(self, exists: bool) -> None:
        """Note whether the kill file exists."""
        with self._changed:
            is_new, self._kill_file = exists != self._kill_file, exists
            self._replan()
        if is_new:
            _log.warning("The kill file %s", "exists: the policy is off." if exists else "is gone.")

    def set_lease_over(self, over: bool) -> None:
        """Note whether the server was silent for longer than the lease."""
        with self._changed:
            is_new, self._lease_over = over != self._lease_over, over
            self._replan()
        if is_new:
            _log.warning("The lease %s", "is over: the policy is off." if over else "is renewed.")

    def wake(self) -> None:
        """Wake all waiting threads."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, seconds: float, is_over: Callable[[], bool]) -> None:
        """Wait for a policy, until `is_over`, which is asked again after each `wake`."""
        with self._changed:
            self._changed.wait_for(lambda: self._snapshot is not None or is_over(), seconds)

    def _replan(self) -> None:
        snapshot = self._snapshot
        off = ""
        if self._order.mode is ControlMode.OFF:
            off = "control"
        elif self._kill_file:
            off = "kill_file"
        elif self._lease_over:
            off = "lease"
        elif snapshot is None:
            off = "no_policy"
        elif self._level is ClientLevel.OFF:
            off = "level"
        observes = self._mode is ActingMode.OBSERVE
        decided_by = DecidedBy.FALLBACK if off or observes else DecidedBy.POLICY
        records = self._mode is ActingMode.EXPLORE and snapshot is not None and self.lineage_problem is None
        records = records and self._level.records
        if decided_by is DecidedBy.FALLBACK:
            records = records and self._accepts_fallback
        plan = ActingPlan(snapshot, off, decided_by, records, observes and not off, self._asks)
        if plan != self.plan:
            self.plan = plan
        self._changed.notify_all()

"""Reports the health of a client to the server in a background thread, and takes what the reply says."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.control_order import ControlOrder
from rl4sys.client.governor import Governor
from rl4sys.client.ordered_profile import OrderedProfile
from rl4sys.client.retries import Remedy, remedy
from rl4sys.client.shared_session import OpenSession, SharedSession, share_of
from rl4sys.wire import ContractViolation
from rl4sys.wire.calls import CallFailed, Code, Transport
from rl4sys.wire.generated import status_pb2, training_pb2

_log = logging.getLogger(__name__)
_NAME = "reporter"
_NO_SESSION_SECONDS, _IDLE_SECONDS = 0.25, 10.0
"""Between two looks for a session, and for one with a server that takes reports."""
_RENEW_SECONDS = 10.0
"""Between two attempts to join again while the learner has another lineage."""


class HealthReporter:
    """Calls Report as often as the server asks for it, or three times per lease."""

    def __init__(
        self,
        shared_session: SharedSession,
        transport: Transport,
        governor: Governor,
        status: AgentStatus,
        clock: Callable[[], float],
        *,
        epoch: int,
        timeout: float,
        lease: float | None,
        report: Callable[[], status_pb2.ClientReport],
        profile: OrderedProfile,
        renew: Callable[[], None],
    ) -> None:
        """`report` makes the report; `profile` carries out orders to measure this client; `renew` joins again."""
        self._shared_session = shared_session
        self._transport = transport
        self._governor = governor
        self._status = status
        self._clock = clock
        self._epoch = epoch
        self._timeout = timeout
        self._lease = lease
        self._report = report
        self._profile = profile
        self._renew = renew
        self._renewed_at = clock()
        self._is_unknown = False
        """Whether the server does not know this call."""
        self._stopping = threading.Event()
        self._awake = threading.Event()
        """Set when there is something to report or to end."""

    def run(self) -> None:
        """Report until `stop` is called."""
        while not self._stopping.is_set():
            self._awake.wait(self._pause())
            self._awake.clear()
            if self._stopping.is_set():
                return
            opened = self._shared_session.opened
            if self._governor.lineage_problem is not None and self._clock() - self._renewed_at >= _RENEW_SECONDS:
                self._renewed_at = self._clock()
                self._renew()
            elif opened is not None:
                self.call(opened)

    def stop(self) -> None:
        """End `run` soon."""
        self._stopping.set()
        self._profile.stop()
        self._awake.set()

    def wake(self) -> None:
        """Report soon."""
        self._awake.set()

    def call(self, opened: OpenSession) -> None:
        """Report once, or ask for a sign of life if the server takes no reports."""
        try:
            if opened.report_seconds > 0 and not self._is_unknown:
                self._send(opened)
            elif self._lease is not None:
                self._ask(opened)
        except CallFailed as error:
            if error.code is Code.UNIMPLEMENTED:
                self._is_unknown = True
            elif remedy(error) is Remedy.JOIN:
                self._shared_session.forget(opened.session)
        except ContractViolation as error:
            self._status.last_error = str(error)

    def _pause(self) -> float:
        opened = self._shared_session.opened
        asked = 0.0 if opened is None or self._is_unknown else opened.report_seconds
        pauses = [pause for pause in (asked, None if self._lease is None else self._lease / 3) if pause]
        return min(pauses, default=_NO_SESSION_SECONDS if opened is None else _IDLE_SECONDS)

    def _send(self, opened: OpenSession) -> None:
        profile = self._profile.progress()
        request = training_pb2.ReportRequest(
            session=opened.session.id, epoch=self._epoch, report=self._report(), profile=profile
        )
        reply = self._transport.report(request, self._timeout)
        self._profile.answered(profile, reply.profile if reply.HasField("profile") else None)
        self._status.succeeded(_NAME)
        self._governor.ask_share(share_of(reply.record_share))
        self._status.warn(reply.warning)
        if reply.HasField("control"):
            kept = self._governor.keeps_version
            self._governor.obey(ControlOrder.from_message(reply.control))
            if kept and not self._governor.keeps_version:
                # The watcher pulls what was published while an operator had frozen the version.
                self._renew()

    def _ask(self, opened: OpenSession) -> None:
        snapshot = self._governor.snapshot
        request = training_pb2.PullRequest(session=opened.session.id)
        if snapshot is not None:
            request.have = snapshot.version
        for _ in self._transport.pull(request, self._timeout):
            break
        self._status.succeeded(_NAME)

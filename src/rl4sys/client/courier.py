"""Pushes the outbox to the server from a background thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.delivery import Delivery, DeliverySession
from rl4sys.client.retries import REFUSED_SECONDS, Remedy, is_unreachable, remedy
from rl4sys.client.shared_session import SharedSession, share_of
from rl4sys.records import DiskOutbox, LogBroken, OfferOutcome
from rl4sys.wire import ContractViolation
from rl4sys.wire.calls import CallFailed, Code, Transport
from rl4sys.wire.compression import compress_push

_log = logging.getLogger(__name__)

_NAME = "courier"
_FOREIGN_SECONDS = 1.0
"""Seconds until it is looked again whether the lineage of the learner is accepted."""


class Courier:
    """Makes a `Delivery` thread-safe and runs it. The lock is not held during a call."""

    def __init__(
        self,
        delivery: Delivery,
        shared_session: SharedSession,
        transport: Transport,
        timeout: float,
        clock: Callable[[], float],
        status: AgentStatus,
        is_foreign: Callable[[], bool] = lambda: False,
        on_share: Callable[[float], None] = lambda share: None,
    ) -> None:
        """`is_foreign`: whether the learner has another lineage than the experience of this client. `on_share` gets the
        share of episodes that the server asks to record."""
        self._on_share = on_share
        self._is_foreign = is_foreign
        self._delivery = delivery
        self._shared_session = shared_session
        self._transport = transport
        self._timeout = timeout
        self._clock = clock
        self._status = status
        self._stopping = False
        self._closed = False
        self._unreachable = False
        """Whether a call since the last flush could not reach the server."""
        self._changed = threading.Condition()

    @property
    def delivery(self) -> Delivery:
        """For its counters, which may be slightly out of date."""
        return self._delivery

    def offer(self, payload: bytes, *, ended: int, count: int = 1) -> None:
        """Put a payload of so many segments into the outbox; with `overflow: block`, wait while it is full.

        `ended`: how many episodes ended with them.
        """
        with self._changed:
            while True:
                try:
                    offer = self._delivery.outbox.offer(payload, count)
                except LogBroken as error:
                    # The payload is counted as a drop by the outbox; what is in memory is still delivered.
                    self._status.last_error = str(error)
                    return
                if offer.outcome is not OfferOutcome.FULL:
                    break
                if self._stopping:
                    self._status.add("drops:unsent_at_close", count)
                    return
                self._changed.wait()
            self._delivery.offered(self._clock(), ended=ended)
            self._changed.notify_all()

    def run(self) -> None:
        """Deliver until `stop` is called."""
        while True:
            with self._changed:
                if self._stopping:
                    return
                pause = self._delivery.wait(self._clock())
                if pause != 0.0:
                    self._changed.wait(pause)
                    continue
            self._deliver()

    def flush(self, deadline: float, *, until_unreachable: bool = False) -> bool:
        """Send at once and wait until everything is settled; false at the deadline or when sending is impossible.

        With `until_unreachable` also when a call from now on cannot reach the server.
        """
        with self._changed:
            self._delivery.flush()
            self._unreachable = False
            self._changed.notify_all()
            try:
                while self._delivery.outbox.backlog:
                    left = deadline - self._clock()
                    if left <= 0 or self._stopping or self._status.stopped is not None:
                        return False
                    if until_unreachable and self._unreachable:
                        return False
                    self._changed.wait(left)
            finally:
                self._delivery.end_flush()
        return True

    def stop(self) -> None:
        """End `run` after the present call."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def close(self) -> int:
        """Close the outbox, even if a call still hangs; returns how many segments are lost with it."""
        with self._changed:
            self._closed = True
            outbox = self._delivery.outbox
            if isinstance(outbox, DiskOutbox):
                outbox.close()
                return 0
            return outbox.backlog_segments

    def _deliver(self) -> None:
        """Make one call."""
        session: DeliverySession | None = None
        try:
            session = self._shared_session.open().session
            if self._is_foreign():
                # Experience of a lineage that the learner does not have would be refused for good: an operator decides.
                with self._changed:
                    self._delivery.pause(self._clock() + _FOREIGN_SECONDS)
                return
            with self._changed:
                request = self._delivery.request(session)
            if request is None:
                return
            if session.accepts_zstd:
                compress_push(request)
            reply = self._transport.push(request, self._timeout)
        except CallFailed as error:
            self._recover(error, session)
            return
        except ContractViolation as error:
            self._recover(CallFailed(Code.INTERNAL, str(error)), session)
            return
        with self._changed:
            if self._closed:
                return
            self._status.succeeded(_NAME)
            self._on_share(share_of(reply.record_share))
            self._delivery.answered(reply, self._clock())
            self._report_refusals()
            self._changed.notify_all()

    def _recover(self, error: CallFailed, session: DeliverySession | None) -> None:
        what = remedy(error)
        # An invalid push is dropped and counted; an invalid join fails until the user repairs the cause.
        is_refused = what is Remedy.REPAIR and (session is None or error.code is not Code.INVALID_ARGUMENT)
        if (is_refused or what is Remedy.JOIN) and session is not None:
            self._shared_session.forget(session)
        with self._changed:
            if self._closed:
                return
            self._unreachable = is_unreachable(error)
            self._delivery.failed(error, self._clock(), REFUSED_SECONDS if is_refused else 0.0)
            self._report_refusals()
            if is_refused:
                self._status.refused(_NAME, error)
            else:
                self._status.failed(error)
            self._changed.notify_all()

    def _report_refusals(self) -> None:
        refusals = self._delivery.refusals
        if refusals and self._status.add("refusals_reported"):
            _log.warning("The server refuses some experience permanently: %s See health().drops.", refusals[0])
        if refusals:
            self._status.last_error = refusals[-1]
        refusals.clear()

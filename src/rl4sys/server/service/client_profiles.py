"""The Profile call: orders a connected client to measure what it costs, and reads what it has measured."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from rl4sys.server.access.caller import Caller
from rl4sys.server.access.client_profile import ClientProfile
from rl4sys.server.access.sessions import ClientActivity, Sessions
from rl4sys.server.call_errors import invalid, precondition
from rl4sys.server.service.alert_metrics import CONNECTED_SECONDS
from rl4sys.server.service.status import may_see
from rl4sys.suggestions import did_you_mean
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import operations_pb2, profile_pb2

_MOST_SECONDS = 3_600.0
_TAKEN_REPORTS = 4
"""A client takes an order with its next report; after so many without it, the order is withdrawn."""
_LEAST_WAIT = 60.0


class ClientProfiles:
    """Gives orders to clients. Any thread may call any method; all raise `CallFailed`."""

    def __init__(
        self,
        sessions: Sessions,
        report_seconds: Callable[[], float],
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._sessions, self._report_seconds = sessions, report_seconds
        self._clock, self._wall_clock = clock, wall_clock

    def find(self, request: operations_pb2.ProfileRequest, caller: Caller) -> ClientActivity:
        """The client that a request names, if the caller may see it."""
        seen = [one for one in self._sessions.clients() if may_see(caller, one.learner.name)]
        found = [one for one in seen if one.client == request.client and request.learner in ("", one.learner.name)]
        name = request.client[:128]
        if not found:
            names = sorted({one.client for one in seen})
            listed = f"There are: {', '.join(names[:50])}." if names else "None has called since the server started."
            of = f" of the learner '{request.learner[:128]}'" if request.learner else ""
            raise CallFailed(
                Code.NOT_FOUND, f"There is no client '{name}'{of}{did_you_mean(name, names) or '.'} {listed}"
            )
        if len(found) > 1:
            learners = ", ".join(one.learner.name for one in found)
            raise _cannot(f"The client '{name}' uses several learners ({learners}); say which of them with --learner.")
        return found[0]

    def begin(self, activity: ClientActivity, wanted: profile_pb2.ProfileOrder) -> operations_pb2.ProfileReply:
        """Order a client to measure what it costs; the sequence is the server's."""
        seconds = wanted.seconds
        if not (math.isfinite(seconds) and 1 <= seconds <= _MOST_SECONDS):
            raise invalid(f"The client cannot be measured for {seconds:g} s; order from 1 to {_MOST_SECONDS:.0f} s.")
        now = self._clock()
        _require_reports(activity, now)
        former = activity.profile
        if former is not None and former.due(now) is not None:
            raise _cannot(f"The client '{activity.client}' is being measured already; wait until that has ended.")
        wait = max(_LEAST_WAIT, _TAKEN_REPORTS * self._report_seconds())
        least = 0 if former is None else former.order.sequence + 1
        # At least the time, so that a client never takes an order of a restarted server for an older one.
        sequence = max(least, int(self._wall_clock() * 1_000))
        order = profile_pb2.ProfileOrder(sequence=sequence, seconds=seconds, seed=wanted.seed)
        activity.profile = ClientProfile(order, now + wait)
        return self._reply(activity, activity.profile)

    def read(self, activity: ClientActivity, wanted: operations_pb2.ReadProfile) -> operations_pb2.ProfileReply:
        """What a client has measured so far."""
        return self._reply(activity, _ordered(activity, wanted.sequence), wanted.have_blocks)

    def end(self, activity: ClientActivity, ended: operations_pb2.EndProfile) -> operations_pb2.ProfileReply:
        """End an order early. The client returns to its normal state with its next report."""
        profile = _ordered(activity, ended.sequence)
        profile.end("an operator ended it")
        return self._reply(activity, profile)

    def _reply(
        self, activity: ClientActivity, profile: ClientProfile, have_blocks: int = 0
    ) -> operations_pb2.ProfileReply:
        profile.due(self._clock())
        return operations_pb2.ProfileReply(
            has_begun=profile.has_begun,
            progress=profile.progress(have_blocks),
            report_seconds=self._report_seconds(),
            software=activity.software,
        )


def _require_reports(activity: ClientActivity, now: float) -> None:
    """Raise unless a client calls and reports, since an order reaches it with the answer to a report."""
    silent = math.inf if activity.last_call is None else now - activity.last_call
    if silent > CONNECTED_SECONDS:
        raise _cannot(
            f"The client '{activity.client}' is not connected: its last call was {silent:.0f} s ago. Start it first."
        )
    if activity.report is None:
        raise _cannot(
            f"The client '{activity.client}' has not reported yet, and an order reaches it with the answer to a "
            f"report. Try again in a moment; if it stays so, the server takes no reports (limits.report_seconds) or "
            f"the client is too old."
        )


def _ordered(activity: ClientActivity, sequence: int) -> ClientProfile:
    if activity.profile is None or activity.profile.order.sequence != sequence:
        raise CallFailed(
            Code.NOT_FOUND,
            f"The server has no order {sequence} to measure the client '{activity.client}': it was restarted, or "
            f"another operator gave a later one. Order it again.",
        )
    return activity.profile


def _cannot(message: str) -> CallFailed:
    return precondition(FailureReason.UNSPECIFIED, message)

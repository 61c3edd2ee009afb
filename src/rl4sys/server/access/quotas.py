"""Limits for pushes: rates of clients and tokens, and the number of epochs of a client."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator

from google.protobuf.message import DecodeError

from rl4sys.server.access.caller import Caller
from rl4sys.server.access.sessions import Session
from rl4sys.server.call_errors import exhausted
from rl4sys.server.options import Rates, ServiceLimits
from rl4sys.wire import FailureReason, packed_steps
from rl4sys.wire.generated import experience_pb2, training_pb2

_EPOCHS_RETRY_MS = 60_000


class Bucket:
    """A token bucket that holds one second of its rate.

    An amount larger than that passes when the bucket is full and leaves it in debt: in the long run the rate holds, and
    no push has to be split.
    """

    def __init__(self, rate: float, now: float) -> None:
        self._rate = self._level = rate
        self._at = now

    def wait(self, amount: float, rate: float, now: float) -> float:
        """Seconds until an amount may be taken; the rate may have changed since the last call."""
        self._rate = rate
        self._level = min(rate, self._level + (now - self._at) * rate)
        self._at = now
        return max(0.0, (min(amount, rate) - self._level) / rate)

    def take(self, amount: float) -> None:
        """Take the amount, after `wait` returned 0."""
        self._level -= amount


class Quotas:
    """Checks each push before anything else does. A push that one rate refuses costs the others nothing."""

    def __init__(self, limits: ServiceLimits, clock: Callable[[], float]) -> None:
        self.limits, self._clock = limits, clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[tuple[str, str, str], Bucket] = OrderedDict()

    def charge(self, session: Session, request: training_pb2.PushRequest, caller: Caller) -> None:
        """Charge a push to its quotas, or raise RESOURCE_EXHAUSTED with the time until it fits."""
        self._require_epoch(session, int(request.epoch))
        demands = list(self._demands(session, request, caller))
        if not demands:
            return
        with self._lock:
            now = self._clock()
            waits = []
            for key, amount, rate in demands:
                bucket = self._bucket(key, rate, now)
                waits.append((bucket.wait(amount, rate, now), key, rate))
            seconds, (whose, _, unit), rate = max(waits)
            if not seconds:
                for key, amount, _ in demands:
                    self._buckets[key].take(amount)
                return
        session.activity.delayed += 1
        raise exhausted(
            FailureReason.QUOTA,
            f"This {whose} has used up its {rate:g} {unit} per second. Send again in {seconds:.3f} s.",
            math.ceil(seconds * 1_000),
        )

    def _require_epoch(self, session: Session, epoch: int) -> None:
        """Refuse more epochs than the limit: each is remembered permanently, so they must be bounded."""
        known, most = session.learner.inbox.stored.deduplication, self.limits.max_epochs
        if known.epochs(session.client) >= most and not known.knows_epoch(session.client, epoch):
            session.activity.delayed += 1
            raise exhausted(
                FailureReason.QUOTA,
                f"The client '{session.client}' has pushed under {most} epochs, and the learner "
                f"'{session.learner.name}' remembers no more of one client. Keep an epoch as long as the process "
                f"runs, or use another client name.",
                _EPOCHS_RETRY_MS,
            )

    def _demands(
        self, session: Session, request: training_pb2.PushRequest, caller: Caller
    ) -> Iterator[tuple[tuple[str, str, str], float, float]]:
        """The amounts to take: bucket, amount and rate."""
        granted = [("client", session.client, self.limits.client_rates)]
        if caller.token:
            granted.append(("token", caller.token, _rates(caller, self.limits)))
        length = steps = None
        for whose, name, rates in granted:
            if rates.bytes_per_second is not None:
                length = length or sum(len(pushed.segment) for pushed in request.segments)
                yield (whose, name, "bytes"), float(length), rates.bytes_per_second
            if rates.steps_per_second is not None:
                steps = steps or self._steps(request)
                yield (whose, name, "steps"), float(steps), rates.steps_per_second

    def _steps(self, request: training_pb2.PushRequest) -> int:
        return sum(min(_claimed_steps(pushed), self.limits.max_segment_steps) for pushed in request.segments)

    def _bucket(self, key: tuple[str, str, str], rate: float, now: float) -> Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            bucket = self._buckets[key] = Bucket(rate, now)
            if len(self._buckets) > 4 * self.limits.max_sessions:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(key)
        return bucket


def _rates(caller: Caller, limits: ServiceLimits) -> Rates:
    """The rates of a token: those of its line in the token file, else the defaults of the server."""
    own, general = caller.rates, limits.token_rates
    if own is None:
        return general
    return general.model_copy(update=own.model_dump(exclude_none=True))


def _claimed_steps(pushed: training_pb2.PushedSegment) -> int:
    """The steps in the header of a segment or a pack; 0 if it cannot be parsed, which is refused later."""
    if pushed.count > 1:
        return packed_steps(pushed.segment, pushed.count)
    try:
        return int(experience_pb2.Segment.FromString(pushed.segment).steps)
    except DecodeError:
        return 0

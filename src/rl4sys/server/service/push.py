"""The Push call: each segment is validated, stored and acknowledged independently of the others."""

from __future__ import annotations

import asyncio
from concurrent.futures import wait
from contextlib import suppress
from functools import partial

from rl4sys.experience import Segment, SegmentPack
from rl4sys.records import LogBroken, LogClosed, LogFull
from rl4sys.server.access.sessions import Session
from rl4sys.server.call_errors import exhausted, invalid, unavailable
from rl4sys.server.learners.inbox import Inbox, StorageFailed
from rl4sys.server.learners.reward_bounds import bounds_of
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.learners.time_requirement import require_no_horizon
from rl4sys.server.options import ServiceLimits
from rl4sys.wire import (
    ContractViolation,
    FailureReason,
    RefusalReason,
    SegmentRefused,
    decode_pack,
    decode_segment,
    split_pack,
    to_ranges,
)
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.compression import decompress_push, uncompressed_bytes
from rl4sys.wire.generated import training_pb2

_LARGEST = (1 << 63) - 1
_LONGEST_REASON = 1_000
_STORAGE_RETRY_MS = 1_000


def repair(inbox: Inbox) -> None:
    """Repair a broken log before anything is pushed; it may take a while."""
    try:
        inbox.repair()
    except StorageFailed as error:
        raise _not_stored(error) from error


def expand(request: training_pb2.PushRequest, limits: ServiceLimits) -> None:
    """Decompress the segments of a push, if they are not more than a message may have."""
    taken = uncompressed_bytes(request)
    if taken > limits.max_message_bytes:
        raise invalid(
            f"A push has {taken} bytes once it is decompressed; at most {limits.max_message_bytes} are accepted."
        )
    decompress_push(request)


class Push:
    """A push under way. Wait until its segments are safe, in a thread or coroutine, then get the reply."""

    def __init__(self, session: Session, request: training_pb2.PushRequest, limits: ServiceLimits) -> None:
        """Validate each segment, and hand the good ones to the log."""
        self._session, self._limits = session, limits
        _require_contract(request, limits)
        session.activity.received_bytes += sum(len(pushed.segment) for pushed in request.segments)
        examined = _Examined(session, request)
        self._known, self._refused = examined.known, examined.refused
        try:
            self._offered = session.learner.inbox.offer(examined.accepted)
        except StorageFailed as error:
            raise _not_stored(error) from error

    def wait(self) -> None:
        """Wait until everything is safe, or the commit is late."""
        wait(self._offered.waiting, self._limits.commit_seconds)

    async def settled(self) -> None:
        """As `wait`, for a coroutine. Cancelling it does not affect the log: the segments may be safe already."""
        loop = asyncio.get_running_loop()
        waiters = [loop.create_future() for _ in self._offered.waiting]
        for stored, waiter in zip(self._offered.waiting, waiters, strict=True):
            stored.add_done_callback(partial(_wake, loop, waiter))
        if waiters:
            await asyncio.wait(waiters, timeout=self._limits.commit_seconds)

    def reply(self) -> training_pb2.PushReply:
        """What became of each segment; raises if the log failed."""
        self._require_stored()
        offered, activity, limits = self._offered, self._session.activity, self._limits
        acknowledged = [*self._known, *offered.repeated, *offered.stored]
        for refusal in self._refused:
            activity.refused[RefusalReason(refusal.reason).name] += max(1, refusal.count)
        repeated = len(self._known) + len(offered.repeated)
        activity.repeated += repeated
        if offered.full is not None:
            activity.delayed += 1
            if not acknowledged and not self._refused:
                raise exhausted(
                    offered.full,
                    f"The inbox of learner '{self._session.learner.name}' is full. Send again later.",
                    limits.retry_ms,
                )
        return training_pb2.PushReply(
            acknowledged=to_ranges(acknowledged),
            refused=self._refused,
            repeated_segments=repeated,
            retry_after_ms=limits.retry_ms if offered.full is not None else 0,
            version=self._session.learner.version,
            record_share=self._session.learner.record_share,
        )

    def _require_stored(self) -> None:
        try:
            for future in self._offered.waiting:
                future.result(0)
        except TimeoutError as error:
            seconds = self._limits.commit_seconds
            raise CallFailed(
                Code.DEADLINE_EXCEEDED, f"The disk took more than {seconds} s. Send the segments again."
            ) from error
        except (LogFull, LogBroken, LogClosed) as error:
            raise _not_stored(error) from error


def _require_contract(request: training_pb2.PushRequest, limits: ServiceLimits) -> None:
    count = len(request.segments)
    if not 1 <= count <= limits.max_push_segments:
        raise invalid(f"A push has {count} segments; expected 1 to {limits.max_push_segments}.")
    if request.ByteSize() > limits.max_message_bytes:
        raise invalid(f"A push has {request.ByteSize()} bytes; at most {limits.max_message_bytes} are accepted.")
    largest = max(pushed.count for pushed in request.segments)
    if largest > max(1, limits.max_pack_segments):
        raise invalid(f"A pack has {largest} segments; at most {limits.max_pack_segments} are accepted.")
    if max(request.epoch, *(pushed.sequence + pushed.count for pushed in request.segments)) > _LARGEST:
        raise invalid(f"Epoch or sequence is larger than {_LARGEST}.")


class _Examined:
    """The segments of a push: those to store, those already stored, and those refused permanently."""

    def __init__(self, session: Session, request: training_pb2.PushRequest) -> None:
        self.accepted: list[StoredSegment] = []
        self.known: list[int] = []
        self.refused: list[training_pb2.Refusal] = []
        self._session, self._epoch = session, int(request.epoch)
        self._is_known_schema = request.schema_hash == session.form.hash
        self._taken: set[int] = set()
        """The numbers of the accepted ones."""
        for pushed in request.segments:
            first, count = int(pushed.sequence), max(1, int(pushed.count))
            self._examine(range(first, first + count), pushed.segment)

    def _examine(self, numbers: range, data: bytes) -> None:
        client, epoch = self._session.client, self._epoch
        known = self._session.learner.inbox.known(client, epoch, numbers)
        if known == len(numbers):
            self.known += numbers
        elif not self._is_known_schema:
            self._refuse(numbers, RefusalReason.SCHEMA, "It was recorded under another schema. Join again.")
        elif len(numbers) == 1:
            if numbers.start in self._taken:
                return
            try:
                self._accept(StoredSegment(client, epoch, numbers.start, self._steps(numbers.start, data), data))
            except SegmentRefused as error:
                self._refuse(numbers, error.reason, str(error))
        elif known or not self._taken.isdisjoint(numbers):
            self._examine_each(numbers, data)
        else:
            try:
                steps = self._packed_steps(numbers, data)
            except SegmentRefused:
                # One of them cannot be learned from: the others can.
                self._examine_each(numbers, data)
            else:
                self._accept(StoredSegment(client, epoch, numbers.start, steps, data, len(numbers)))

    def _examine_each(self, numbers: range, pack: bytes) -> None:
        try:
            alone = split_pack(pack, len(numbers))
        except ContractViolation as error:
            self._refuse(numbers, RefusalReason.MALFORMED, str(error))
            return
        for number, data in zip(numbers, alone, strict=True):
            self._examine(range(number, number + 1), data)

    def _accept(self, entry: StoredSegment) -> None:
        self.accepted.append(entry)
        self._taken.update(entry.sequences)

    def _refuse(self, numbers: range, reason: RefusalReason, message: str) -> None:
        self.refused.append(
            training_pb2.Refusal(
                sequence=numbers.start,
                reason=f"REFUSAL_REASON_{reason.name}",
                message=message[:_LONGEST_REASON],
                count=len(numbers) if len(numbers) > 1 else 0,
            )
        )

    def _steps(self, sequence: int, data: bytes) -> int:
        """The number of steps of a segment that can be learned from."""
        segment = decode_segment(
            self._session.form,
            data,
            client=self._session.client,
            sequence=sequence,
            max_steps=self._session.learner.setup.max_segment_steps,
        )
        self._require_learnable(sequence, segment)
        return segment.steps

    def _packed_steps(self, numbers: range, data: bytes) -> int:
        """The number of steps of a pack in which every segment can be learned from."""
        pack = decode_pack(
            self._session.form,
            data,
            client=self._session.client,
            count=len(numbers),
            max_steps=self._session.learner.setup.max_segment_steps,
        )
        self._require_learnable(numbers.start, pack)
        return len(pack.reward)

    def _require_learnable(self, sequence: int, segment: Segment | SegmentPack) -> None:
        """Raise `SegmentRefused` if the learner cannot use what a sound segment or pack says."""
        learner = self._session.learner
        newest = learner.known_version
        if segment.policy_version > newest:
            raise SegmentRefused(
                RefusalReason.UNKNOWN_VERSION,
                f"Segment {sequence} claims policy version {segment.policy_version}; the newest is {newest}.",
            )
        settings = learner.commands.settings or learner.config
        if segment.elapsed is None:
            require_no_horizon(settings, sequence)
        bounds = bounds_of(settings)
        if bounds is not None:
            bounds.require(segment.reward, sequence)


def _wake(loop: asyncio.AbstractEventLoop, waiter: asyncio.Future[None], _: object) -> None:
    """Called by the thread that commits."""
    with suppress(RuntimeError):  # the loop has ended with the server, and no caller waits there
        loop.call_soon_threadsafe(_finish, waiter)


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def _not_stored(error: Exception) -> CallFailed:
    return unavailable(
        f"Nothing was stored: {error} Keep the segments and send them again.",
        FailureReason.STORAGE,
        _STORAGE_RETRY_MS,
    )

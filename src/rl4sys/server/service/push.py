"""The Push call: each segment is validated, stored and acknowledged independently of the others."""

from __future__ import annotations

import asyncio
from concurrent.futures import wait
from contextlib import suppress
from functools import partial

from rl4sys.records import LogBroken, LogClosed, LogFull
from rl4sys.server.access.sessions import Session
from rl4sys.server.call_errors import exhausted, invalid, unavailable
from rl4sys.server.learners.inbox import Inbox, StorageFailed
from rl4sys.server.learners.reward_bounds import bounds_of
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.learners.time_requirement import require_no_horizon
from rl4sys.server.options import ServiceLimits
from rl4sys.wire import FailureReason, RefusalReason, SegmentRefused, decode_segment, to_ranges
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
        accepted, self._known, self._refused = _examine(session, request, limits)
        try:
            self._offered = session.learner.inbox.offer(accepted)
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
            activity.refused[RefusalReason(refusal.reason).name] += 1
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
    if max(request.epoch, *(pushed.sequence for pushed in request.segments)) > _LARGEST:
        raise invalid(f"Epoch or sequence is larger than {_LARGEST}.")


def _examine(
    session: Session, request: training_pb2.PushRequest, limits: ServiceLimits
) -> tuple[list[StoredSegment], list[int], list[training_pb2.Refusal]]:
    """The segments to store, those already stored, and those refused permanently."""
    inbox, client, epoch = session.learner.inbox, session.client, int(request.epoch)
    is_known_schema = request.schema_hash == session.form.hash
    accepted: dict[int, StoredSegment] = {}
    known: list[int] = []
    refused: list[training_pb2.Refusal] = []
    for pushed in request.segments:
        sequence = int(pushed.sequence)
        if inbox.knows(client, epoch, sequence):
            known.append(sequence)
        elif sequence in accepted:
            continue
        elif not is_known_schema:
            refused.append(
                _refusal(sequence, RefusalReason.SCHEMA, "It was recorded under another schema. Join again.")
            )
        else:
            try:
                steps = _validated(session, pushed, limits)
            except SegmentRefused as error:
                refused.append(_refusal(sequence, error.reason, str(error)))
            else:
                accepted[sequence] = StoredSegment(client, epoch, sequence, steps, pushed.segment)
    return list(accepted.values()), known, refused


def _validated(session: Session, pushed: training_pb2.PushedSegment, limits: ServiceLimits) -> int:
    """The number of steps of a segment that can be learned from."""
    learner = session.learner
    segment = decode_segment(
        session.form,
        pushed.segment,
        client=session.client,
        sequence=int(pushed.sequence),
        max_steps=learner.setup.max_segment_steps,
    )
    newest = learner.known_version
    if segment.policy_version > newest:
        raise SegmentRefused(
            RefusalReason.UNKNOWN_VERSION,
            f"Segment {pushed.sequence} claims policy version {segment.policy_version}; the newest is {newest}.",
        )
    settings = learner.commands.settings or learner.config
    if segment.elapsed is None:
        require_no_horizon(settings, int(pushed.sequence))
    bounds = bounds_of(settings)
    if bounds is not None:
        bounds.require(segment.reward, int(pushed.sequence))
    return segment.steps


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


def _refusal(sequence: int, reason: RefusalReason, message: str) -> training_pb2.Refusal:
    return training_pb2.Refusal(
        sequence=sequence, reason=f"REFUSAL_REASON_{reason.name}", message=message[:_LONGEST_REASON]
    )

"""From pushed segments to acknowledgements: each is looked at by itself, and its neighbours never suffer for it."""

from __future__ import annotations

from concurrent.futures import wait

from rl4sys.records import LogBroken, LogClosed, LogFull
from rl4sys.server.entries import Entry
from rl4sys.server.failing import exhausted, invalid, unavailable
from rl4sys.server.inbox import Offered, StorageFailed
from rl4sys.server.limits import ServiceLimits
from rl4sys.server.sessions import Session
from rl4sys.wire import FailureReason, RefusalReason, SegmentRefused, decode_segment, to_ranges
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

_LARGEST = (1 << 63) - 1
_LONGEST_REASON = 1_000
_STORAGE_RETRY_MS = 1_000


def push(session: Session, request: training_pb2.PushRequest, limits: ServiceLimits) -> training_pb2.PushReply:
    """Store what can be stored, wait until it is safe, and say what became of each segment."""
    facts = session.facts
    _require_contract(request, limits)
    facts.received_bytes += sum(len(pushed.segment) for pushed in request.segments)
    accepted, known, refused = _examine(session, request, limits)
    try:
        offered = session.learner.inbox.offer(accepted)
        _await(offered, limits)
    except (StorageFailed, LogFull, LogBroken, LogClosed) as error:
        raise unavailable(
            f"Nothing was stored: {error} Keep the segments and send them again.",
            FailureReason.STORAGE,
            _STORAGE_RETRY_MS,
        ) from error
    acknowledged = [*known, *offered.repeated, *offered.stored]
    for refusal in refused:
        facts.refused[RefusalReason(refusal.reason).name] += 1
    facts.repeated += len(known) + len(offered.repeated)
    if offered.full is not None:
        facts.delayed += 1
        if not acknowledged and not refused:
            raise exhausted(
                offered.full,
                f"The learner '{session.learner.name}' has as much waiting as it may have. Send again later.",
                limits.retry_ms,
            )
    return training_pb2.PushReply(
        acknowledged=to_ranges(acknowledged),
        refused=refused,
        repeated_segments=len(known) + len(offered.repeated),
        retry_after_ms=limits.retry_ms if offered.full is not None else 0,
        version=session.learner.version,
    )


def _require_contract(request: training_pb2.PushRequest, limits: ServiceLimits) -> None:
    count = len(request.segments)
    if not 1 <= count <= limits.max_push_segments:
        raise invalid(f"A push has {count} segments; expected 1 to {limits.max_push_segments}.")
    if request.ByteSize() > limits.max_message_bytes:
        raise invalid(f"A push has {request.ByteSize()} bytes; at most {limits.max_message_bytes} are taken.")
    if max(request.epoch, *(pushed.sequence for pushed in request.segments)) > _LARGEST:
        raise invalid(f"Epoch or sequence is larger than {_LARGEST}.")


def _examine(
    session: Session, request: training_pb2.PushRequest, limits: ServiceLimits
) -> tuple[list[Entry], list[int], list[training_pb2.Refusal]]:
    """Segments to store, those that are stored already, and those that never can be."""
    inbox, client, epoch = session.learner.inbox, session.client, int(request.epoch)
    is_known_schema = request.schema_hash == session.form.hash
    accepted: dict[int, Entry] = {}
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
                accepted[sequence] = Entry(client, epoch, sequence, steps, pushed.segment)
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
    # Each record that waits may still bring a version: a worker that folds its log again repeats old ones.
    newest = learner.version + learner.inbox.unfolded
    if segment.policy_version > newest:
        raise SegmentRefused(
            RefusalReason.UNKNOWN_VERSION,
            f"Segment {pushed.sequence} claims policy version {segment.policy_version}; the newest is {newest}.",
        )
    return segment.steps


def _await(offered: Offered, limits: ServiceLimits) -> None:
    """Return when everything on its way is safe; raise what befell it."""
    done, late = wait(offered.waiting, limits.commit_seconds)
    for future in done:
        future.result()
    if late:
        raise CallFailed(
            Code.DEADLINE_EXCEEDED, f"The disk took more than {limits.commit_seconds} s. Send the segments again."
        )


def _refusal(sequence: int, reason: RefusalReason, message: str) -> training_pb2.Refusal:
    return training_pb2.Refusal(
        sequence=sequence, reason=f"REFUSAL_REASON_{reason.name}", message=message[:_LONGEST_REASON]
    )

"""Stores recorded experience in the log of a learner: each segment once, like those that clients push."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import wait

from google.protobuf.message import DecodeError

from rl4sys.experience import DecidedBy
from rl4sys.records import LogBroken, LogClosed, LogFull
from rl4sys.server.call_errors import exhausted, invalid, precondition, unavailable
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.inbox import StorageFailed
from rl4sys.server.learners.reward_bounds import bounds_of
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.wire import FailureReason, RefusalReason, SegmentFormat, SegmentRefused, decode_segment
from rl4sys.wire.generated import operations_pb2

_MOST_ORIGIN = 255
_LARGEST = (1 << 63) - 1
_COMMIT_SECONDS = 30.0


def store_experience(learner: HostedLearner, data: bytes, source: str) -> str:
    """Store a RecordedExperience, and say what became of it. If not everything fits, RESOURCE_EXHAUSTED: send it again,
    and what was stored before is ignored."""
    form = learner.form
    if form is None:
        raise unavailable(f"The learner '{learner.name}' has no policy yet. Try again.")
    if not learner.replays:
        raise precondition(
            FailureReason.UNSPECIFIED,
            f"The learner '{learner.name}' ({learner.setup.algorithm}) learns from fresh decisions of its own policy: "
            f"recorded ones are of no use to it. Start it from a run (rl4sys learners warm-start {learner.name} RUN), "
            f"from a policy (rl4sys learners install {learner.name} POLICY), or let an algorithm with replay learn "
            f"from them, such as DQN or SAC.",
        )
    try:
        recorded = operations_pb2.RecordedExperience.FromString(data)
    except DecodeError as error:
        raise invalid(f"The file is not recorded experience: {error}.") from error
    entries, refusals = [], Counter[str]()
    first_refusal = ""
    for segment in recorded.segments:
        try:
            entries.append(_entry(learner, form, segment))
        except SegmentRefused as error:
            refusals[error.reason.name] += 1
            first_refusal = first_refusal or str(error)
    stored, known = _offer(learner, entries)
    refused = ", ".join(f"{count} refused ({reason})" for reason, count in sorted(refusals.items()))
    said = [
        f"{stored} segments of {source} are stored for '{learner.name}', {known} were known",
        refused,
        first_refusal,
    ]
    return ". ".join(part.rstrip(".") for part in said if part) + "."


def _entry(learner: HostedLearner, form: SegmentFormat, recorded: operations_pb2.RecordedSegment) -> StoredSegment:
    origin, epoch, sequence = recorded.origin, int(recorded.epoch), int(recorded.sequence)
    if " " not in origin or len(origin.encode()) > _MOST_ORIGIN or max(epoch, sequence) > _LARGEST:
        raise invalid(
            f"The origin '{origin[:_MOST_ORIGIN]}' must have a space and up to {_MOST_ORIGIN} bytes, and numbers must "
            f"not exceed {_LARGEST}."
        )
    segment = decode_segment(
        form, recorded.segment, client=origin, sequence=sequence, max_steps=learner.setup.max_segment_steps
    )
    if segment.decided_by is not DecidedBy.FALLBACK or segment.policy_version:
        raise SegmentRefused(
            RefusalReason.MALFORMED, f"Segment {sequence} of {origin} claims to be decided by the policy."
        )
    bounds = bounds_of(learner.commands.settings or learner.config)
    if bounds is not None:
        bounds.require(segment.reward, sequence)
    return StoredSegment(origin, epoch, sequence, segment.steps, recorded.segment)


def _offer(learner: HostedLearner, entries: list[StoredSegment]) -> tuple[int, int]:
    """Store what is new: how many that are, and how many were known."""
    try:
        learner.inbox.repair()
        offered = learner.inbox.offer(entries)
        wait(offered.waiting, _COMMIT_SECONDS)
        for future in offered.waiting:
            future.result(0)
    except (StorageFailed, LogFull, LogBroken, LogClosed, TimeoutError) as error:
        raise unavailable(f"The experience could not be stored: {error}", FailureReason.STORAGE) from error
    if offered.full is not None:
        raise exhausted(offered.full, f"The inbox of learner '{learner.name}' is full. Send it again later.", 1_000)
    return len(offered.stored), len(offered.repeated)

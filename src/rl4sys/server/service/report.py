"""The Report call: the health of a client, and what it has to know between two reports."""

from __future__ import annotations

import math

from rl4sys.server.access.sessions import Session
from rl4sys.wire.generated import status_pb2, training_pb2

_LONGEST_TEXT = 1_000
_LONGEST_NAME = 64
_MOST_REASONS = 32
_MOST_BUCKETS = 24


def take_report(session: Session, request: training_pb2.ReportRequest, now: float) -> training_pb2.ReportReply:
    """Keep the report as the newest of its client, and answer it."""
    activity = session.activity
    report = activity.report = bounded(request.report)
    activity.reported_at = now
    session.learner.note_lineage(
        session.client, report.lineage, int(report.version) if report.HasField("version") else None
    )
    profile = activity.profile
    if profile is not None and request.HasField("profile"):
        profile.take(request.profile, int(request.epoch))
    return training_pb2.ReportReply(
        profile=None if profile is None else profile.due(now),
        version=session.learner.version,
        control=session.learner.orders.message(),
        record_share=session.learner.record_share,
        warning=activity.programs.warning(now),
    )


def bounded(report: status_pb2.ClientReport) -> status_pb2.ClientReport:
    """A copy with texts and lists cut to the lengths of the contract: it is kept, and shown to others."""
    kept = status_pb2.ClientReport()
    kept.CopyFrom(report)
    kept.DiscardUnknownFields()
    for name in ("lineage", "mode", "off"):
        setattr(kept, name, getattr(report, name)[:_LONGEST_NAME])
    kept.last_error = report.last_error[:_LONGEST_TEXT]
    kept.drops.clear()
    for reason in sorted(report.drops)[:_MOST_REASONS]:
        kept.drops[reason[:_LONGEST_NAME]] = report.drops[reason]
    del kept.decision_time[_MOST_BUCKETS:]
    if not math.isfinite(report.uptime_seconds):
        kept.uptime_seconds = 0.0
    return kept

"""The health of an agent as the message that is reported to the server."""

from __future__ import annotations

from rl4sys.client.health import Health
from rl4sys.wire.generated import status_pb2

_MOST_TEXT = 1024


def client_report(health: Health, uptime: float) -> status_pb2.ClientReport:
    """The message for ReportRequest."""
    report = status_pb2.ClientReport(
        lineage=health.lineage or "",
        mode=health.mode,
        control_sequence=health.control_sequence,
        off=health.off or ("other_lineage" if health.lineage_problem else ""),
        decisions=health.decisions + health.fallback_decisions,
        fallback_decisions=health.fallback_decisions,
        bad_inputs=health.bad_inputs,
        unanswered_decisions=health.unanswered_decisions,
        thinned_episodes=health.thinned_episodes,
        open_episodes=health.open_episodes,
        backlog_segments=health.backlog,
        backlog_bytes=health.backlog_bytes,
        drops=health.drops,
        late_rewards=health.late_rewards,
        decision_time=health.decision_time,
        last_error=(health.last_error or "").encode()[:_MOST_TEXT].decode(errors="ignore"),
        uptime_seconds=uptime,
    )
    if health.version is not None:
        report.version = health.version
    return report

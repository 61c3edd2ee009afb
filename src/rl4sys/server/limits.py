"""How much the service takes: every queue, message and wait has an end."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Turning a number up takes more memory, disk or patience, and refuses less."""

    max_message_bytes: int = 4 << 20
    """Of one message, both ways."""
    max_segment_steps: int = 65_536
    max_push_segments: int = 1_024
    max_outstanding_segments: int = 4_096
    """Segments that a client may have sent without having an answer for them."""
    inbox_bytes: int = 256 << 20
    """What may wait in the log of one learner until it is learned from."""
    inbox_segments: int = 200_000
    client_bytes: int = 128 << 20
    """What one client may have waiting there: less than the whole, so that nobody fills a shared learner alone."""
    max_learners: int = 256
    max_sessions: int = 16_384
    max_watchers: int = 512
    max_act_rows: int = 4_096
    parameters_bytes: int = 64 << 10
    join_seconds: float = 60.0
    """How long Join waits for a learner to be made or restored."""
    commit_seconds: float = 30.0
    """How long Push waits for the disk."""
    retry_ms: int = 200
    """The delay that is asked for when something is full."""

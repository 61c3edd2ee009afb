"""How much the service takes: every queue, message and wait has an end."""

from __future__ import annotations

from pydantic import Field

from rl4sys.config import Config


class Rates(Config):
    """How fast experience may come in. What is sent again counts again."""

    steps_per_second: float | None = Field(None, gt=0)
    """Steps of pushed segments; null for as fast as they come."""
    bytes_per_second: float | None = Field(None, gt=0)
    """Bytes of pushed segments; null for as fast as they come."""


class ServiceLimits(Config):
    """What a server takes. Turning a number up takes more memory, disk or patience, and refuses less."""

    max_message_bytes: int = Field(4 << 20, ge=64 << 10)
    """Of one message, both ways."""
    max_segment_steps: int = Field(65_536, ge=1)
    """Of one segment."""
    max_push_segments: int = Field(1_024, ge=1)
    """Of one push."""
    max_outstanding_segments: int = Field(4_096, ge=1)
    """Segments that a client may have sent without having an answer for them."""
    inbox_bytes: int = Field(256 << 20, ge=1)
    """What may wait in the log of one learner until it is learned from."""
    inbox_segments: int = Field(200_000, ge=1)
    """The same, counted in segments."""
    client_bytes: int = Field(128 << 20, ge=1)
    """What one client may have waiting there: less than the whole, so that nobody fills a shared learner alone."""
    max_epochs: int = Field(65_536, ge=1)
    """Lives of one client that a learner remembers, for ever. A client that has used them up needs another name."""
    max_learners: int = Field(256, ge=1)
    """Of the whole server. Each takes a process and its memory."""
    max_learners_per_token: int = Field(128, ge=1)
    """That one token may have made."""
    max_starting: int | None = Field(None, ge=1)
    """Learners that are made or restored at the same time, the others wait; null for as many as there are cores."""
    max_waiting_joins: int = Field(8, ge=1)
    """Clients that may wait, each with a thread of the server, for a learner to start; others are told to try again."""
    max_sessions: int = Field(16_384, ge=1)
    """Of the whole server; the longest unused gives way, and its client joins again."""
    max_sessions_per_token: int = Field(8_192, ge=1)
    """That one token may hold; its own longest unused gives way."""
    max_watchers: int = Field(4_096, ge=1)
    """Clients that are told of new versions at the same time."""
    max_watchers_per_token: int = Field(2_048, ge=1)
    """The same, of one token."""
    max_act_rows: int = Field(4_096, ge=1)
    """Decisions asked for in one call."""
    parameters_bytes: int = Field(64 << 10, ge=1)
    """Of an algorithm's parameters in a request."""
    join_seconds: float = Field(60.0, gt=0)
    """How long Join waits for a learner to be made or restored."""
    commit_seconds: float = Field(30.0, gt=0)
    """How long Push waits for the disk."""
    retry_ms: int = Field(200, ge=1)
    """The delay that is asked for when something is full."""
    client_rates: Rates = Rates()
    """Of each client, whichever learner it trains."""
    token_rates: Rates = Rates()
    """Of each token, all its clients together; its line in the token file may say otherwise."""

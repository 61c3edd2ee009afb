"""Details of a failed call, in the trailing metadata of its status."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass

from rl4sys.wire.errors import ContractViolation
from rl4sys.wire.generated import training_pb2
from rl4sys.wire.message_sizes import FAILURE_BYTES
from rl4sys.wire.messages import parse

FAILURE_METADATA = "rl4sys-failure-bin"


class FailureReason(enum.IntEnum):
    """What happened, for programs. Names and numbers are those of the proto."""

    UNSPECIFIED = 0
    UNKNOWN_SESSION = 1
    PROTOCOL = 2
    MISSING_OPS = 3
    OTHER_LEARNER = 4
    LEARNER_FAILED = 5
    INBOX_FULL = 6
    QUOTA = 7
    STORAGE = 8
    DRAINING = 9
    VERSION_GONE = 10
    SCHEMA = 11
    ALGORITHM_FORBIDDEN = 12
    LIMIT = 13


_REASONS = {reason.value: reason for reason in FailureReason}


@dataclass(frozen=True, slots=True)
class Failure:
    """Details of a failed call."""

    reason: FailureReason = FailureReason.UNSPECIFIED
    retry_after_ms: int = 0
    """0: as long as the client's own backoff."""

    def to_metadata(self) -> tuple[str, bytes]:
        """The entry for the trailing metadata."""
        reason = f"FAILURE_REASON_{self.reason.name}"
        message = training_pb2.Failure(reason=reason, retry_after_ms=self.retry_after_ms)
        return FAILURE_METADATA, message.SerializeToString()

    @classmethod
    def from_metadata(cls, metadata: Iterable[tuple[str, str | bytes]]) -> Failure:
        """The failure in the trailing metadata; an unspecified one if there is none that can be read.

        A client must handle every failure, including those of a proxy or a newer server.
        """
        for key, value in metadata:
            if key == FAILURE_METADATA and isinstance(value, bytes):
                try:
                    message = parse(training_pb2.Failure, value, most_bytes=FAILURE_BYTES)
                except ContractViolation:
                    return cls()
                reason = _REASONS.get(int(message.reason), FailureReason.UNSPECIFIED)
                return cls(reason, message.retry_after_ms)
        return cls()

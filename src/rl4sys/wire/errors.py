"""Errors of messages."""

from __future__ import annotations

import enum


class ContractViolation(ValueError):
    """A message, received or about to be sent, breaks the wire contract. Nothing of it was used."""


class RefusalReason(enum.IntEnum):
    """Why a segment can never be stored. Names and numbers are those of the proto."""

    SCHEMA = 1
    MALFORMED = 2
    TOO_LARGE = 3
    NOT_FINITE = 4
    OUT_OF_RANGE = 5
    UNKNOWN_VERSION = 6
    REWARD_BOUNDS = 7


class SegmentRefused(ValueError):
    """A segment that can never be stored; sending it again does not help."""

    def __init__(self, reason: RefusalReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        """For the program of the sender; the text is for people."""

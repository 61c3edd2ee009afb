"""The blocks of a profile as messages, for a client that is measured by order of an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rl4sys.wire.generated import profile_pb2

_NAMES = {
    "round": "round",
    "level": "level",
    "seconds": "seconds",
    "decisions": "decisions",
    "cpu": "cpu_seconds",
    "background_cpu": "background_cpu_seconds",
    "memory": "memory_bytes",
    "waits": "waits",
    "preemptions": "preemptions",
    "sent_messages": "sent_messages",
    "sent_bytes": "sent_bytes",
    "received_messages": "received_messages",
    "received_bytes": "received_bytes",
    "backlog": "backlog_segments",
    "backlog_bytes": "backlog_bytes",
    "longest": "longest_nanoseconds",
}
"""What a profiler calls the numbers of a block, and what they are called on the wire."""


def block_message(block: Mapping[str, Any]) -> profile_pb2.ProfileBlock:
    """A block of a profiler as a message."""
    message = profile_pb2.ProfileBlock(times=block["times"], version_age_seconds=block["age"])
    for name, sent_as in _NAMES.items():
        setattr(message, sent_as, block[name])
    return message


def block_values(message: profile_pb2.ProfileBlock) -> dict[str, Any]:
    """The block in a message, as a profiler writes it."""
    age = message.version_age_seconds if message.HasField("version_age_seconds") else None
    values = {name: getattr(message, sent_as) for name, sent_as in _NAMES.items()}
    return values | {"times": dict(message.times), "age": age}

"""Counts what goes over a connection."""

from __future__ import annotations


class Traffic:
    """Messages and their bytes in each direction, without what HTTP/2 and TLS add.

    Counts may miss one now and then when threads race, which a rate can bear.
    """

    __slots__ = ("received_bytes", "received_messages", "sent_bytes", "sent_messages")

    def __init__(self) -> None:
        self.sent_messages = self.sent_bytes = self.received_messages = self.received_bytes = 0

    def sent(self, message: bytes) -> bytes:
        """Count a message to the server, and return it."""
        self.sent_messages += 1
        self.sent_bytes += len(message)
        return message

    def received(self, message: bytes) -> bytes:
        """Count a message from the server, and return it."""
        self.received_messages += 1
        self.received_bytes += len(message)
        return message

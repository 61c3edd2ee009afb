"""As much of HTTP/1.1 as the example needs: heads of requests and answers with a length."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

_LONGEST_HEAD = 16 << 10


class Head(NamedTuple):
    """The first line and the headers of a request or an answer."""

    first: str
    text: bytes
    """All of it, as it was received."""
    length: int
    """Bytes of the body that follows."""

    @property
    def path(self) -> str:
        """The path of a request."""
        return self.first.split(" ")[1]

    @property
    def status(self) -> int:
        """The status of an answer."""
        return int(self.first.split(" ")[1])


async def read_head(reader: asyncio.StreamReader) -> Head | None:
    """The next head; None at the end of the connection."""
    try:
        text = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise ConnectionError("The connection ended within a head.") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise ConnectionError(f"A head is longer than {_LONGEST_HEAD} bytes.") from error
    first, *headers = text.decode("latin-1").split("\r\n")
    length = 0
    for header in headers:
        name, _, value = header.partition(":")
        if name.lower() == "content-length":
            length = int(value)
    return Head(first, text, length)


class Connections:
    """Open connections to one server, to be used again: each carries one request at a time."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, request: bytes) -> tuple[Head, bytes]:
        """Send a request and return its answer. A connection that has died meanwhile is replaced once."""
        was_idle = bool(self._idle)
        reader, writer = self._idle.pop() if was_idle else await self._open()
        try:
            return await self._ask(reader, writer, request)
        except ConnectionError:
            writer.close()
            if not was_idle:
                raise
        reader, writer = await self._open()
        return await self._ask(reader, writer, request)

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop()[1].close()

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=_LONGEST_HEAD)

    async def _ask(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
    ) -> tuple[Head, bytes]:
        writer.write(request)
        await writer.drain()
        head = await read_head(reader)
        if head is None:
            raise ConnectionError("The server closed the connection without an answer.")
        body = await reader.readexactly(head.length)
        self._idle.append((reader, writer))
        return head, body

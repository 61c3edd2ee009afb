"""The balancer: an asyncio reverse proxy that chooses a backend for each request."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Protocol

from rl4sys.environments.balancing.backend_view import BackendView
from rl4sys.environments.balancing.requests import CLASSES

from .http import Connections, Head, read_head

_BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"
_KINDS = {f"/{each.name}": number for number, each in enumerate(CLASSES)}


class Chooser(Protocol):
    """Chooses a backend, and hears how long the answer took."""

    def choose(self, views: list[BackendView], kind: int, now: float) -> tuple[int, int | None]:
        """The backend, and the id of the decision if its latency is wanted."""

    def finished(self, decision: int | None, latency: float) -> None:
        """Take the latency of a decision in seconds."""


class Proxy:
    """Passes requests on. Its chooser may be replaced while it runs."""

    def __init__(self, ports: Sequence[int], chooser: Chooser, clock: Callable[[], float] = time.monotonic) -> None:
        self.chooser = chooser
        self.views = [BackendView() for _ in ports]
        self.failed: Counter[int] = Counter()
        """Requests without an answer, by backend."""
        self.passed = 0
        self._backends = [Connections(port) for port in ports]
        self._clock = clock

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on the requests of one connection until it is closed."""
        try:
            while (head := await read_head(reader)) is not None:
                body = await reader.readexactly(head.length)
                writer.write(await self._pass_on(head, body))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            # The caller is gone.
            pass
        finally:
            writer.close()

    async def _pass_on(self, head: Head, body: bytes) -> bytes:
        kind, now = _KINDS.get(head.path, 0), self._clock()
        chooser = self.chooser
        number, decision = chooser.choose(self.views, kind, now)
        view = self.views[number]
        view.sent(kind, now)
        try:
            answer, content = await self._backends[number].ask(head.text + body)
            self.passed += 1
            return answer.text + content
        except (ConnectionError, asyncio.IncompleteReadError, OSError):
            self.failed[number] += 1
            return _BAD_GATEWAY
        finally:
            ended = self._clock()
            view.answered(kind, now, ended)
            chooser.finished(decision, ended - now)

    def close(self) -> None:
        """Close the connections to backends."""
        for backend in self._backends:
            backend.close()

"""Server-sent events: pages that stay up to date while they are looked at.

A `LiveSource` is read for as long as at least one page listens, once for all of them. `LiveStreams` turns its values
into answers that last until the page is closed or the process is stopped.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import Any, Generic, NamedTuple, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

T = TypeVar("T")

_QUIET_SECONDS = 15.0
"""Seconds after which a line without content is sent, so that a page that is gone is noticed."""
_RETRY_MILLISECONDS = 1000


class Event(NamedTuple):
    """Something that a page is informed of."""

    name: str
    data: Any = None
    """What can be written as JSON."""

    def text(self) -> str:
        """The event as it is sent. JSON as written here has no line breaks."""
        return f"event: {self.name}\ndata: {json.dumps(self.data)}\n\n"


class LiveSource(Generic[T]):
    """A value that is read every few seconds while some page listens; each page gets it when it has changed."""

    def __init__(self, read: Callable[[], T], seconds: float) -> None:
        self._read, self._seconds = read, seconds
        self._listeners = 0
        self._reader: asyncio.Task[None] | None = None
        self._changed = asyncio.Condition()
        self._number = 0
        self._value: T | None = None

    async def values(self) -> AsyncGenerator[T]:
        """The current value, and then every later one; a slow page gets the newest and skips those before it."""
        self._listeners += 1
        if self._reader is None or self._reader.done():
            self._reader = asyncio.create_task(self._keep_reading())
        seen = 0 if self._value is None else self._number - 1
        try:
            while True:
                async with self._changed:
                    while self._number == seen and not self._failed():
                        await self._changed.wait()
                    if self._failed():
                        self._reader.result()
                    seen, value = self._number, self._value
                if value is not None:
                    yield value
        finally:
            self._listeners -= 1
            if not self._listeners and self._reader is not None:
                self._reader.cancel()
                self._value = None

    def _failed(self) -> bool:
        return self._reader is not None and self._reader.done()

    async def _keep_reading(self) -> None:
        try:
            while True:
                value = await run_in_threadpool(self._read)
                if value != self._value:
                    async with self._changed:
                        self._value, self._number = value, self._number + 1
                        self._changed.notify_all()
                await asyncio.sleep(self._seconds)
        finally:
            # Listeners of a reader that failed see its error, and their pages connect again.
            asyncio.get_running_loop().call_soon(lambda: asyncio.ensure_future(self._wake()))

    async def _wake(self) -> None:
        async with self._changed:
            self._changed.notify_all()


class LiveStreams:
    """Answers with events that end when the process is stopped, so that open pages do not delay it."""

    def __init__(self) -> None:
        self._closing = asyncio.Event()

    def close(self) -> None:
        """End all streams."""
        self._closing.set()

    def respond(self, events: AsyncGenerator[Event]) -> StreamingResponse:
        """An answer that sends events as they come."""
        return StreamingResponse(
            self._lines(events), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    async def _lines(self, events: AsyncGenerator[Event]) -> AsyncIterator[str]:
        closing = asyncio.ensure_future(self._closing.wait())
        following: asyncio.Task[Event | None] | None = None
        try:
            yield f"retry: {_RETRY_MILLISECONDS}\n\n"
            while True:
                following = following or asyncio.create_task(_next(events))
                await asyncio.wait({following, closing}, timeout=_QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                if closing.done():
                    return
                if not following.done():
                    yield ": nothing new\n\n"
                    continue
                event, following = following.result(), None
                if event is None:
                    return
                yield event.text()
        finally:
            closing.cancel()
            if following is not None:
                following.cancel()
                await asyncio.wait({following})
            await events.aclose()


async def _next(events: AsyncGenerator[Event]) -> Event | None:
    return await anext(events, None)

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import pytest

from rl4sys.ui.live_updates import Event, LiveSource, LiveStreams


def within_seconds(work: Callable[[], Awaitable[None]], seconds: float = 20) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(work(), seconds)

    asyncio.run(bounded())


class Numbers:
    """A source that counts how often it was read."""

    def __init__(self, *values: int) -> None:
        self.left, self.reads = list(values), 0

    def read(self) -> int:
        self.reads += 1
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def test_a_listener_gets_the_value_and_then_each_change() -> None:
    async def work() -> None:
        source = LiveSource(Numbers(1, 1, 2, 2, 3).read, 0.001)
        async with aclosing(source.values()) as values:
            assert [await anext(values), await anext(values), await anext(values)] == [1, 2, 3]

    within_seconds(work)


def test_a_source_is_read_once_for_all_listeners_and_not_without_any() -> None:
    async def work() -> None:
        numbers = Numbers(7)
        source = LiveSource(numbers.read, 60)
        async with aclosing(source.values()) as first, aclosing(source.values()) as second:
            assert (await anext(first), await anext(second)) == (7, 7)
            assert numbers.reads == 1
        assert source._reader is not None
        with pytest.raises(asyncio.CancelledError):
            await source._reader

    within_seconds(work)


def test_a_listener_sees_the_error_of_a_source_and_the_next_one_tries_again() -> None:
    failing = [True]

    def read() -> str:
        if failing[0]:
            raise RuntimeError("the disk is gone")
        return "back"

    async def work() -> None:
        source = LiveSource(read, 0.001)
        async with aclosing(source.values()) as values:
            with pytest.raises(RuntimeError, match="the disk is gone"):
                await anext(values)
        failing[0] = False
        async with aclosing(source.values()) as values:
            assert await anext(values) == "back"

    within_seconds(work)


async def never() -> AsyncGenerator[Event]:
    await asyncio.Event().wait()
    yield Event("unreachable")


def test_streams_end_when_the_process_is_stopped() -> None:
    async def work() -> None:
        streams = LiveStreams()
        lines = streams.respond(never()).body_iterator
        assert await anext(aiter(lines)) == "retry: 1000\n\n"
        asyncio.get_running_loop().call_soon(streams.close)
        assert [line async for line in lines] == []

    within_seconds(work)


def test_an_event_is_one_block_of_lines_whatever_it_contains() -> None:
    text = Event("points", {"note": "two\nlines\r\n\nevent: other"}).text()
    assert text.count("\n") == 3
    assert json.loads(text.splitlines()[1].removeprefix("data: "))["note"].startswith("two\nlines")

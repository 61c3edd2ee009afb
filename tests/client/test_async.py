"""The client in an event loop: what takes time runs in another thread."""

from __future__ import annotations

import asyncio
import threading

import pytest
from tests.client.agents import SETTINGS, agent_on, seen
from tests.client.fake_server import FakeServer
from tests.client.waiting import until

import rl4sys
from rl4sys.client import Agent, ConnectError, Ending
from rl4sys.wire.calls import CallFailed, Code


async def one_request(agent: Agent, number: int) -> int:
    """An episode of one task, between whose steps other tasks run."""
    async with agent.episode() as episode:
        for step in range(5):
            episode.act(seen(100 * number + step))
            await asyncio.sleep(0)
            episode.reward(float(number))
        episode.end(seen(0), Ending.TERMINATED)
    return number


def test_many_tasks_have_an_episode_each() -> None:
    server = FakeServer()

    async def main() -> None:
        async with await rl4sys.connect_async(SETTINGS, transport=server) as agent:
            done = await asyncio.gather(*(one_request(agent, number) for number in range(200)))
            assert done == list(range(200))

    asyncio.run(main())
    for segment in server.segments():
        number = int(segment.reward[0])
        assert segment.reward.tolist() == [number] * 5
        assert segment.observation["observation"][:5, 0].tolist() == [100 * number + step for step in range(5)]
    assert len(server.segments()) == 200


def test_the_loop_runs_on_while_an_agent_connects_and_closes() -> None:
    """The server replies only after the loop said so, which a blocked loop could not."""
    server, may_reply = FakeServer(), {"join": threading.Event(), "push": threading.Event()}
    server.before = lambda call: None if call not in may_reply else _wait(may_reply[call])

    async def main() -> None:
        connecting = asyncio.ensure_future(rl4sys.connect_async(SETTINGS, transport=server))
        asyncio.get_running_loop().call_later(0.01, may_reply["join"].set)
        async with await connecting as agent:
            await one_request(agent, 1)
            asyncio.get_running_loop().call_later(0.01, may_reply["push"].set)

    asyncio.run(main())
    assert len(server.segments()) == 1


def _wait(event: threading.Event) -> None:
    assert event.wait(4.0)


def test_leaving_an_episode_without_an_end_truncates_it() -> None:
    server = FakeServer()

    async def main() -> None:
        with agent_on(server) as agent:
            async with agent.episode() as episode:
                episode.act(seen(0))
                episode.act(seen(1))

    asyncio.run(main())
    assert [segment.ending for segment in server.segments()] == [Ending.TRUNCATED]


def test_a_refusal_is_raised_in_the_task_that_connects() -> None:
    server = FakeServer()

    def refuse(call: str) -> None:
        raise CallFailed(Code.UNAUTHENTICATED, "no token")

    server.before = refuse
    with pytest.raises(ConnectError, match="no token"):
        asyncio.run(rl4sys.connect_async(SETTINGS, transport=server))


def test_a_cancelled_connect_leaves_no_agent_behind() -> None:
    server, may_reply, asked = FakeServer(), threading.Event(), threading.Event()

    def hold(call: str) -> None:
        asked.set()
        _wait(may_reply)

    server.before = hold

    async def main() -> None:
        connecting = asyncio.ensure_future(rl4sys.connect_async(SETTINGS, transport=server))
        await asyncio.to_thread(asked.wait, 4.0)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        may_reply.set()

    asyncio.run(main())
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("rl4sys-")])

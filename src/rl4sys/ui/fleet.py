"""All servers that the pages show, and the task that asks them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.operations.server_processes import connect_to_all
from rl4sys.ui.server_access import ServerAccess
from rl4sys.ui.watched_server import WatchedServer

SECONDS = 2.0
"""Between two questions to a server, however many pages are open."""


class UnknownServer(LookupError):
    """A page asked for a server or learner that is not shown."""


class Fleet:
    """The watched servers. `revision` grows whenever one of them was asked."""

    def __init__(self, servers: Sequence[WatchedServer], seconds: float = SECONDS) -> None:
        self.servers = tuple(servers)
        self.revision = 0
        self._seconds = seconds
        self._asked = asyncio.Condition()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    def connect(cls, addresses: Sequence[str], access: ServerAccess, seconds: float = SECONDS) -> Fleet:
        """Connections to servers; each connects when it is first asked."""
        servers = [WatchedServer(each, connect_to_all(access.viewer(each), each)) for each in addresses]
        return cls(servers, seconds)

    def start(self) -> None:
        """Ask each server again and again, until `stop`. Called in the event loop."""
        self._tasks = [asyncio.create_task(self._keep_asking(server)) for server in self.servers]

    async def stop(self) -> None:
        """Ask no more, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for server in self.servers:
            server.close()

    async def first_answer(self) -> None:
        """Wait until every server was asked once, so that the first page is not empty."""
        async with self._asked:
            await self._asked.wait_for(lambda: all(each.view.at or each.view.problem for each in self.servers))

    async def revisions(self) -> AsyncGenerator[int]:
        """The present revision, and every later one; a slow page skips some."""
        seen = -1
        while True:
            async with self._asked:
                await self._asked.wait_for(lambda seen=seen: self.revision != seen)  # type: ignore[misc]
                seen = self.revision
            yield seen

    def server(self, address: str | None) -> WatchedServer:
        """A server by its address, or the first."""
        if address is None:
            return self.servers[0]
        for server in self.servers:
            if server.address == address:
                return server
        raise UnknownServer(f"The server {address} is not shown here; start `rl4sys ui` with --server {address}.")

    def values(self) -> list[Mapping[str, Any]]:
        """What `rl4sys status --json` prints about each server, with its address."""
        from rl4sys.operations.status_tables import with_findings

        return [
            {"address": view.address, "problem": view.problem, "asked_at": view.at}
            | ({} if view.status is None else with_findings(view.status))
            for view in (server.view for server in self.servers)
        ]

    async def _keep_asking(self, server: WatchedServer) -> None:
        while True:
            began = time.monotonic()
            await run_in_threadpool(server.ask)
            async with self._asked:
                self.revision += 1
                self._asked.notify_all()
            await asyncio.sleep(max(0.0, self._seconds - (time.monotonic() - began)))


def operator_transport(access: ServerAccess, address: str, learner: str) -> GrpcTransport | None:
    """A connection for a command about one learner; None if there is no right to give any."""
    from dataclasses import replace

    from rl4sys.wire.port_range import own_address

    settings = access.operator(address)
    return None if settings is None else GrpcTransport(replace(settings, server=own_address(address, learner)))

"""A TCP proxy on loopback that behaves like a distant server: every byte travels for half a round trip."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_CHUNK = 1 << 16


@contextmanager
def delayed(address: str, round_trip: float) -> Iterator[str]:
    """The address of a proxy for `address`; `round_trip` in seconds."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="delay proxy")
    thread.start()
    proxy = _Proxy(address, round_trip)
    try:
        port = asyncio.run_coroutine_threadsafe(proxy.start(), loop).result(5.0)
        yield f"127.0.0.1:{port}"
    finally:
        asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result(5.0)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class _Proxy:
    def __init__(self, address: str, round_trip: float) -> None:
        self._host, _, port = address.rpartition(":")
        self._port, self._round_trip = int(port), round_trip
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen; returns the port."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close all connections."""
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        writers = [writer]
        try:
            # The kernel has already answered the client, which a distant one would have done a round trip later.
            await asyncio.sleep(self._round_trip)
            there, back = await asyncio.open_connection(self._host, self._port)
            writers.append(back)
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
        except asyncio.CancelledError:
            # The proxy stops: asyncio would print a traceback for each open connection.
            return
        finally:
            for open_writer in writers:
                open_writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry bytes one way, each chunk half a round trip later."""
        loop = asyncio.get_running_loop()
        travelling: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def receive() -> None:
            while True:
                data = await reader.read(_CHUNK)
                travelling.put_nowait((loop.time() + self._round_trip / 2, data))
                if not data:
                    return

        receiving = asyncio.ensure_future(receive())
        try:
            while True:
                due, data = await travelling.get()
                await asyncio.sleep(due - loop.time())
                if not data:
                    writer.close()
                    return
                writer.write(data)
        finally:
            receiving.cancel()

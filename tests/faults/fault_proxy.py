"""A proxy on loopback with faults: delays, resets, silence, a trickle, or garbage instead of bytes."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Literal, Self

Fault = Literal["none", "delay", "reset", "half-open", "trickle", "garbage"]
FAULTS: tuple[Fault, ...] = ("half-open", "garbage", "trickle", "reset", "delay")
_RESET = struct.pack("ii", 1, 0)


class FaultProxy:
    """Forwards connections to a port, in a thread of its own, with the current `fault`."""

    def __init__(self, target: int, seed: int = 0) -> None:
        self.fault: Fault = "none"
        self._target = target
        self._rng = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault proxy", daemon=True)
        self._thread.start()
        self._server: asyncio.Server = self._run(asyncio.start_server(self._accept, "127.0.0.1", 0))
        self.port: int = self._server.sockets[0].getsockname()[1]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def heal(self) -> None:
        """Forward without faults again. A connection that lost bytes is reset."""
        self.fault = "none"
        self._run(self._reset_all())

    def worsen(self, fault: Fault) -> None:
        """Apply a fault to new and existing connections."""
        self.fault = fault
        if fault == "reset":
            self._run(self._reset_all())

    def close(self) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30.0)

    async def _stop(self) -> None:
        self._server.close()
        await self._reset_all()
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _reset_all(self) -> None:
        for writer in list(self._writers):
            _reset(writer)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            if self.fault == "reset":
                _reset(writer)
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            self._writers.add(back)
            await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
        except OSError:
            # Either end may be gone; the other one is closed below.
            pass
        finally:
            for end in (writer, *([back] if "back" in locals() else [])):
                self._writers.discard(end)
                end.close()

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            match self.fault:
                case "half-open":
                    continue
                case "garbage":
                    data = self._rng.randbytes(len(data))
                case "delay":
                    await asyncio.sleep(self._rng.uniform(0.05, 0.3))
                case "trickle":
                    await self._trickle(data, sink)
                    continue
            sink.write(data)
            await sink.drain()
        with suppress(OSError):
            sink.write_eof()

    async def _trickle(self, data: bytes, sink: asyncio.StreamWriter) -> None:
        for place in range(len(data)):
            if self.fault != "trickle":
                sink.write(data[place:])
                break
            sink.write(data[place : place + 1])
            await asyncio.sleep(0.02)
        await sink.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    end: socket.socket | None = writer.get_extra_info("socket")
    if end is not None:
        with suppress(OSError):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()

"""One backend as a process: a small HTTP server that works on requests one by one, in order, by sleeping."""

from __future__ import annotations

import argparse
import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from rl4sys.environments.balancing.requests import CLASSES, Disturbance, Speed

from .http import read_head

_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n"


class Backend:
    """Serves connections. A single thread sleeps for each request, which makes it the only worker."""

    def __init__(self, speed: Speed, began: float) -> None:
        """`began`: when the periods of a disturbance began, by the monotonic clock, which all processes share."""
        self._speed, self._began = speed, began
        self._worker = ThreadPoolExecutor(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it is closed."""
        works = {f"/{each.name}": each.work for each in CLASSES}
        loop = asyncio.get_running_loop()
        try:
            while (head := await read_head(reader)) is not None:
                await loop.run_in_executor(self._worker, self._work, works[head.path])
                writer.write(_ANSWER)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()

    def _work(self, work: float) -> None:
        start = time.monotonic() - self._began
        time.sleep(max(0.0, self._speed.finish(start, work) - start))


async def _main(port: int, speed: Speed, began: float) -> None:
    backend = Backend(speed, began)
    server = await asyncio.start_server(backend.serve, "127.0.0.1", port)
    print(f"serving {server.sockets[0].getsockname()[1]}", flush=True)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--speed", type=float, default=1.0)
    parser.add_argument("--chaos", action="store_true", help="be slower for a part of every period")
    parser.add_argument("--began", type=float, default=0.0, help="when periods began, by the monotonic clock")
    asked = parser.parse_args()
    asyncio.run(_main(asked.port, Speed(asked.speed, Disturbance() if asked.chaos else None), asked.began))

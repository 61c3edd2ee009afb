"""Sends requests at the times they arrive, whether or not earlier ones are answered (open loop), as a process.

Latencies count from the intended time, so that a slow service cannot hide behind a slow generator. Writes one line per
request: its intended time by the monotonic clock, its latency in seconds, and the status of the answer (0 without one).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

import numpy as np

from rl4sys.environments.balancing.requests import CLASSES, RATE, arrivals

from .http import Connections


async def send_all(port: int, rate: float, seconds: float, seed: int, began: float) -> None:
    """Send requests for some seconds and wait for their answers."""
    connections = Connections(port)
    running: set[asyncio.Task[None]] = set()
    for request in arrivals(rate, np.random.default_rng(seed)):
        if request.at > seconds:
            break
        intended = began + request.at
        if (pause := intended - time.monotonic()) > 0:
            await asyncio.sleep(pause)
        task = asyncio.create_task(_send(connections, request.kind, intended))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    connections.close()


async def _send(connections: Connections, kind: int, intended: float) -> None:
    status = 0
    try:
        head, _ = await connections.ask(f"GET /{CLASSES[kind].name} HTTP/1.1\r\nHost: service\r\n\r\n".encode())
        status = head.status
    except (ConnectionError, asyncio.IncompleteReadError, OSError):
        # Reported as status 0: the run continues and counts it.
        pass
    sys.stdout.write(f"{intended:.6f} {time.monotonic() - intended:.6f} {status}\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--began", type=float, required=True, help="the monotonic time of the first second")
    asked = parser.parse_args()
    asyncio.run(send_all(asked.port, asked.rate, asked.seconds, asked.seed, asked.began))

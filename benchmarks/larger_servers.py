"""A server past one process: acknowledgements with learners on Ray, and ingest in two processes.

Run `python benchmarks/larger_servers.py`. Both compare two servers that run in turn in the same minutes:

- `--workers ray` and process workers: clients push at random times and wait for each acknowledgement, in alternating
  rounds; the ratio of the p99 over all rounds, counted from the time at which a push was due;
- `--processes 2` and one process: clients with learners of their own, which the processes divide, push as fast as they
  are acknowledged. They need cores, too: with two cores for everything, two processes cannot be twice as fast.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import socket
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ingest import ACTION, FAST_SEGMENTS, FAST_STEPS, METHOD, OBSERVATION, _one_of_many, segment_bytes
from serving import Serving, serving

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.server.clients import join_request
from tests.server.loopback import StubTransport

from rl4sys.wire.generated import training_pb2
from rl4sys.wire.port_range import process_of


async def acknowledged(server: Serving, round_number: int, options: argparse.Namespace) -> list[float]:
    """Seconds from the time at which each push was due to its acknowledgement."""
    late: list[float] = []
    ready = asyncio.Barrier(options.clients)
    rate = options.pushes / options.clients
    names = [f"round-{round_number}-{number}" for number in range(options.clients)]
    await asyncio.gather(*[_one_of_many(server.port, name, rate, ready, options.seconds, late) for name in names])
    return late


async def in_turn(servers: dict[str, Serving], options: argparse.Namespace) -> dict[str, list[float]]:
    """The times of each server, in alternating rounds."""
    late: dict[str, list[float]] = {name: [] for name in servers}
    for number in range(options.rounds):
        for name, server in servers.items():
            late[name] += await acknowledged(server, number, options)
    return late


def on_ray(options: argparse.Namespace) -> dict[str, float]:
    """Acknowledgements with learners on Ray, and in processes of the server."""
    with serving("--workers", "processes") as here, serving("--workers", "ray") as ray:
        late = asyncio.run(in_turn({"processes": here, "ray": ray}, options))
    found = {
        f"{name}: {label} ms": float(np.percentile(times, share)) * 1e3
        for name, times in late.items()
        for label, share in (("median", 50), ("p99", 99))
    }
    return found | {"p99, Ray relative to processes": found["ray: p99 ms"] / found["processes: p99 ms"]}


def push_fast(port: int, client: str, seconds: float, begin: Any, results: Any) -> None:
    """Push as fast as the server acknowledges, with a learner of its own; a process."""
    transport = StubTransport(port)
    reply = transport.join(join_request(client, METHOD, "", OBSERVATION, ACTION), 60)
    data, sequence = segment_bytes(reply, client, FAST_STEPS), 0
    begin.wait()
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        segments = [training_pb2.PushedSegment(sequence=sequence + n, segment=data) for n in range(FAST_SEGMENTS)]
        answer = transport.push(
            training_pb2.PushRequest(session=reply.session, epoch=1, schema_hash=reply.schema_hash, segments=segments),
            60,
        )
        sequence += sum(part.last - part.first + 1 for part in answer.acknowledged)
    results.put(sequence * FAST_STEPS)
    transport.close()


def steps_per_second(processes: int, options: argparse.Namespace) -> float:
    """What so many processes acknowledge to fast clients, as many for each process."""
    context = multiprocessing.get_context("spawn")
    results, begin = context.Queue(), context.Barrier(options.fast)
    with serving("--listen", f"127.0.0.1:{_free_ports()}", "--processes", str(processes)) as server:
        clients = [
            context.Process(target=push_fast, args=(server.port + process, name, options.seconds, begin, results))
            for name, process in _divided(options.fast, processes)
        ]
        for client in clients:
            client.start()
        steps = sum(results.get() for _ in clients)
        for client in clients:
            client.join()
    return steps / options.seconds


def _divided(clients: int, processes: int) -> list[tuple[str, int]]:
    """Names of clients, whose learners are divided evenly, and the processes of these."""
    found: list[tuple[str, int]] = []
    number = 0
    while len(found) < clients:
        process = process_of(f"fast-{number}", processes)
        if [each for _, each in found].count(process) < -(-clients // processes):
            found.append((f"fast-{number}", process))
        number += 1
    return found


def _free_ports() -> int:
    """A free port that another free one follows."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


def in_processes(options: argparse.Namespace) -> dict[str, float]:
    """Steps per second with one process and with two, the median of alternating rounds."""
    found: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(options.rounds):
        for processes, rates in found.items():
            rates.append(steps_per_second(processes, options))
    one, two = (statistics.median(rates) for rates in found.values())
    return {"one process: steps/s": one, "two processes: steps/s": two, "speed-up": two / one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each round")
    parser.add_argument("--rounds", type=int, default=5, help="of each server, in turn")
    parser.add_argument("--clients", type=int, default=50, help="that wait for acknowledgements")
    parser.add_argument("--pushes", type=float, default=150.0, help="pushes per second of all these together")
    parser.add_argument("--fast", type=int, default=4, help="clients that push as fast as they can; an even number")
    parser.add_argument("--parts", nargs="+", choices=["ray", "processes"], default=["ray", "processes"])
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    options = parser.parse_args()
    parts = {"ray": on_ray, "processes": in_processes}
    results = {part: parts[part](options) for part in options.parts}
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for part, numbers in results.items():
        print(f"serve --{'workers ray' if part == 'ray' else 'processes 2'}")
        for name, value in numbers.items():
            print(f"  {name:36}{value:14,.2f}")
    print(
        f"target: p99 with Ray ≤ 1.2 times that with processes; {os.cpu_count()} cores for servers and clients together"
    )


if __name__ == "__main__":
    main()

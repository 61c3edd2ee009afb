"""Cost and capacity of a server: CPU time per step, steps per second, acknowledgements with 200 clients.

Run `python benchmarks/ingest.py`. The server is a separate process and syncs every acknowledged segment to the disk.
The learner only stores segments and never updates, since it would compete for the same cores. Clients push prepared
segments of a LunarLander-like schema, 41 bytes a step, over real connections.

- four fast clients: each pushes 16 segments of 200 steps at a time, like an agent at full speed, one push after the
  other;
- 200 clients: each has its own connection, watches for versions, and pushes one segment of 50 steps at random times,
  600 pushes a second in total. Latency is measured from the time at which a push was due, so that a delay within the
  client counts too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import random
import sys
import time
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from serving import Serving, serving

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.server.clients import join_request
from tests.server.loopback import StubTransport

from rl4sys.experience import ArraySpec, Ending, Segment, StreamKey
from rl4sys.policy import DiscreteAction
from rl4sys.wire import SegmentFormat, decode_policy, encode_segment
from rl4sys.wire.generated import training_pb2, training_pb2_grpc

OBSERVATION = (ArraySpec("observation", "float32", (8,)),)
ACTION = DiscreteAction(4)
METHOD = ("DQN", {"algorithm": {"learning_starts": 10**9}, "buffer": {"size": 10_000}})
FAST_SEGMENTS, FAST_STEPS = 16, 200
SLOW_STEPS = 50


def request_of(client: str) -> training_pb2.JoinRequest:
    return join_request(client, METHOD, "fleet", OBSERVATION, ACTION)


def segment_bytes(reply: training_pb2.JoinReply, client: str, steps: int) -> bytes:
    spec, form = decode_policy(reply.explore), SegmentFormat.from_message(reply.schema)
    rng = np.random.default_rng(0)
    segment = Segment(
        StreamKey(client, "agent", 0),
        0,
        0,
        reply.version,
        Ending.TERMINATED,
        {"observation": rng.normal(size=(steps + 1, 8)).astype(np.float32)},
        rng.integers(0, 4, steps),
        rng.normal(size=steps).astype(np.float32),
        {array.name: np.full(steps, -1.4, np.float32) for array in spec.noted},
        {},
    )
    return encode_segment(form, segment)


def push_fast(port: int, client: str, seconds: float, results: Any) -> None:
    transport = StubTransport(port)
    reply = transport.join(request_of(client), 60)
    data = segment_bytes(reply, client, FAST_STEPS)
    sequence, stop = 0, time.monotonic() + seconds
    while time.monotonic() < stop:
        segments = [
            training_pb2.PushedSegment(sequence=sequence + offset, segment=data) for offset in range(FAST_SEGMENTS)
        ]
        answer = transport.push(
            training_pb2.PushRequest(session=reply.session, epoch=1, schema_hash=reply.schema_hash, segments=segments),
            60,
        )
        assert sum(part.last - part.first + 1 for part in answer.acknowledged) == FAST_SEGMENTS
        sequence += FAST_SEGMENTS
    results.put(sequence * FAST_STEPS)
    transport.close()


def fast_clients(server: Serving, seconds: float, clients: int = 4) -> dict[str, float]:
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    warm = StubTransport(server.port)
    warm.join(request_of("warm"), 60)
    warm.close()
    processes = [
        context.Process(target=push_fast, args=(server.port, f"fast-{number}", seconds, results))
        for number in range(clients)
    ]
    before, begin = server.cpu_seconds(), time.monotonic()
    for process in processes:
        process.start()
    steps = sum(results.get() for _ in processes)
    elapsed, cpu = time.monotonic() - begin, server.cpu_seconds() - before
    for process in processes:
        process.join()
    return {
        "steps/s": steps / seconds,
        "µs of server CPU per step": cpu / steps * 1e6,
        "µs of server CPU per push": cpu / (steps / FAST_STEPS / FAST_SEGMENTS) * 1e6,
        "elapsed": elapsed,
    }


async def _joined(stub: Any, name: str) -> training_pb2.JoinReply:
    """Join as a client does: while the learner starts, the server may refuse, and the client tries again."""
    while True:
        try:
            return await stub.Join(request_of(name))
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise
            await asyncio.sleep(0.2)


async def _one_of_many(
    port: int, name: str, rate: float, ready: asyncio.Barrier, seconds: float, late: list[float]
) -> None:
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        stub: Any = training_pb2_grpc.TrainingStub(channel)
        reply = await _joined(stub, name)
        data = segment_bytes(reply, name, SLOW_STEPS)
        watching = stub.Watch(training_pb2.WatchRequest(session=reply.session, have=reply.version))
        rng = random.Random(name)
        loop = asyncio.get_running_loop()
        await ready.wait()
        end = loop.time() + seconds
        due, sequence = loop.time() + rng.expovariate(rate), 0
        while due < end:
            await asyncio.sleep(max(0.0, due - loop.time()))
            segment = training_pb2.PushedSegment(sequence=sequence, segment=data)
            request = training_pb2.PushRequest(
                session=reply.session, epoch=1, schema_hash=reply.schema_hash, segments=[segment]
            )
            answer = await stub.Push(request)
            assert len(answer.acknowledged) == 1
            late.append(loop.time() - due)
            sequence += 1
            due += rng.expovariate(rate)
        watching.cancel()


async def _many(server: Serving, seconds: float, clients: int, pushes: float) -> dict[str, float]:
    loop = asyncio.get_running_loop()
    late: list[float] = []
    ready = asyncio.Barrier(clients + 1)
    tasks = [
        asyncio.create_task(_one_of_many(server.port, f"many-{n}", pushes / clients, ready, seconds, late))
        for n in range(clients)
    ]
    await ready.wait()
    begin, before = loop.time(), server.cpu_seconds()
    await asyncio.gather(*tasks)
    cpu = server.cpu_seconds() - before
    times = np.array(late) * 1000
    return {
        "acknowledgements/s": len(late) / (loop.time() - begin),
        "median ms": float(np.median(times)),
        "p99 ms": float(np.percentile(times, 99)),
        "µs of server CPU per push": cpu / len(late) * 1e6,
        "µs of server CPU per step": cpu / len(late) / SLOW_STEPS * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=8.0, help="duration of each part")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--pushes", type=float, default=600.0, help="pushes per second of all clients together")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    with serving() as server:
        # Short: they push more than a learner reads, and its inbox is bounded.
        results = {"four fast clients": fast_clients(server, min(3.0, options.seconds))}
    with serving() as server:
        many = asyncio.run(_many(server, options.seconds, options.clients, options.pushes))
        results[f"{options.clients} clients"] = many
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for part, numbers in results.items():
        print(part)
        for name, value in numbers.items():
            print(f"  {name:32}{value:12,.1f}")
    print("targets: ≥ 50,000 steps/s from four clients; ≤ 10 µs of server CPU per step;")
    print("         ≥ 500 synced acknowledgements/s with 200 clients at p99 ≤ 50 ms")


if __name__ == "__main__":
    main()

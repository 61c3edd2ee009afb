"""What a fleet costs: CPU time of one ingest process per push, byte, report and connection, and a plan from them.

Run `python benchmarks/fleet.py`. Costs are measured one by one with a real server process, which syncs every
acknowledged segment to the disk. Then a fleet is simulated against the same kind of process: clients with episodes of
random length at random times, each of which watches for versions, reports, and waits for every acknowledgement. The
CPU time that the process took is compared with what the costs predict, and the plan for larger fleets is printed.

All costs are CPU times, so that other processes on the machine change them little.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from ingest import _joined, segment_bytes
from serving import Serving, serving

sys.path.insert(0, str(Path(__file__).parents[1]))

from rl4sys.wire.generated import status_pb2, training_pb2, training_pb2_grpc

SHORT, LONG = 10, 1_000
"""Steps of the two segments from which the costs of a push and of a byte follow."""
MEDIAN_STEPS, SPREAD = 50, 0.8
"""Episodes of the simulated fleet have log-normal lengths."""
EPISODE_SECONDS, REPORT_SECONDS = 10.0, 5.0
FULL, LIGHT = 64, 4
"""Calls at a time: a process under full load takes many at each turn of its loop, one under light load takes few."""
IDLE_SECONDS = 5.0
PLANS = ((10_000, 1.0, 20.0), (1_000_000, 1.0, 2_000.0), (1_000_000, 0.005, 2_000.0))
"""Clients, the share of episodes that they record, and seconds between two reports of each."""


@dataclass(slots=True)
class Client:
    """One client of a fleet: its connection, its session, and what it has sent."""

    stub: Any
    reply: training_pb2.JoinReply
    sequence: int = 0
    watching: Any = None
    late: list[float] = field(default_factory=list)

    async def push(self, data: bytes) -> None:
        """Push one segment, and require that it is acknowledged."""
        segment = training_pb2.PushedSegment(sequence=self.sequence, segment=data)
        self.sequence += 1
        joined = self.reply
        request = training_pb2.PushRequest(
            session=joined.session, epoch=1, schema_hash=joined.schema_hash, segments=[segment]
        )
        answer = await self.stub.Push(request)
        assert len(answer.acknowledged) == 1, "a push was not acknowledged"

    async def report(self) -> None:
        """Report its health."""
        report = status_pb2.ClientReport(decisions=self.sequence)
        await self.stub.Report(training_pb2.ReportRequest(session=self.reply.session, epoch=1, report=report))


async def connect(server: Serving, names: list[str], *, watch: bool) -> list[Client]:
    """Clients with a connection each."""
    options = [("grpc.use_local_subchannel_pool", 1)]
    clients = []
    for name in names:
        stub: Any = training_pb2_grpc.TrainingStub(grpc.aio.insecure_channel(server.address, options))
        client = Client(stub, await _joined(stub, name))
        if watch:
            request = training_pb2.WatchRequest(session=client.reply.session, have=client.reply.version)
            client.watching = stub.Watch(request)
        clients.append(client)
    return clients


async def cpu_of(server: Serving, count: int, at_once: int, work: Callable[[int], Awaitable[None]]) -> float:
    """Seconds of the server's CPU time for one of many calls, some of them at a time."""
    numbers = iter(range(count))

    async def run() -> None:
        for number in numbers:
            await work(number)

    before = server.cpu_seconds()
    await asyncio.gather(*[run() for _ in range(at_once)])
    return (server.cpu_seconds() - before) / count


async def unit_costs(server: Serving, count: int) -> dict[str, dict[str, float]]:
    """Seconds of CPU time of the parts of a fleet's work, under full and under light load."""
    clients = await connect(server, [f"unit-{number}" for number in range(FULL)], watch=False)
    sizes = {steps: segment_bytes(clients[0].reply, "unit-0", steps) for steps in (SHORT, LONG)}
    found = {}
    for name, at_once in (("full load", FULL), ("light load", LIGHT)):
        pushes = [
            await cpu_of(server, count, at_once, lambda number, data=data: clients[number % FULL].push(data))
            for data in sizes.values()
        ]
        report = await cpu_of(server, count, at_once, lambda number: clients[number % FULL].report())
        per_byte = max(0.0, pushes[1] - pushes[0]) / (len(sizes[LONG]) - len(sizes[SHORT]))
        found[name] = {"push": pushes[0] - per_byte * len(sizes[SHORT]), "byte": per_byte, "report": report}
    return found


async def idle_costs(server: Serving, clients: int) -> dict[str, float]:
    """What connected clients cost that do nothing: CPU time in each second, and memory."""
    before = memory_of(server)
    await connect(server, [f"idle-{number}" for number in range(clients)], watch=True)
    begin = server.cpu_seconds()
    await asyncio.sleep(IDLE_SECONDS)
    cpu = (server.cpu_seconds() - begin) / IDLE_SECONDS
    return {"CPU per second": cpu, "bytes per client": (memory_of(server) - before) / clients}


async def simulate(server: Serving, clients: int, seconds: float) -> dict[str, float]:
    """A fleet: Poisson episodes of log-normal lengths, reports, and the time until each acknowledgement."""
    rng = random.Random(0)
    fleet = await connect(server, [f"fleet-{number}" for number in range(clients)], watch=True)
    lengths = [max(1, round(rng.lognormvariate(math.log(MEDIAN_STEPS), SPREAD))) for _ in range(64)]
    segments = [segment_bytes(fleet[0].reply, "fleet-0", steps) for steps in lengths]
    loop = asyncio.get_running_loop()
    sent: list[int] = []
    reports: list[int] = []

    async def act(client: Client, end: float) -> None:
        due = loop.time() + rng.expovariate(1 / EPISODE_SECONDS)
        while due < end:
            await asyncio.sleep(max(0.0, due - loop.time()))
            data = rng.choice(segments)
            await client.push(data)
            sent.append(len(data))
            client.late.append(loop.time() - due)
            due += rng.expovariate(1 / EPISODE_SECONDS)

    async def tell(client: Client, end: float) -> None:
        due = loop.time() + rng.uniform(0.0, REPORT_SECONDS)
        while due < end:
            await asyncio.sleep(max(0.0, due - loop.time()))
            await client.report()
            reports.append(1)
            due += REPORT_SECONDS

    before, begin = server.cpu_seconds(), loop.time()
    end = begin + seconds
    await asyncio.gather(*[work(client, end) for client in fleet for work in (act, tell)])
    cpu, late = server.cpu_seconds() - before, np.array([each for client in fleet for each in client.late]) * 1000
    return {
        "pushes": len(sent),
        "bytes": sum(sent),
        "reports": len(reports),
        "seconds": loop.time() - begin,
        "CPU seconds": cpu,
        "median ms": float(np.median(late)),
        "p99 ms": float(np.percentile(late, 99)),
    }


def memory_of(server: Serving) -> int:
    """Resident bytes of the ingest process."""
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def predicted(costs: dict[str, float], idle: float, fleet: dict[str, float]) -> float:
    """Seconds of CPU time for what a fleet did, from the costs one by one."""
    calls = fleet["pushes"] * costs["push"] + fleet["bytes"] * costs["byte"] + fleet["reports"] * costs["report"]
    return calls + idle * fleet["seconds"]


def plan(
    costs: dict[str, float], memory: float, push_bytes: float, fleet: tuple[int, float, float]
) -> dict[str, float]:
    """What a fleet needs: clients with an episode every ten seconds, a share of them recorded, and with reports."""
    clients, share, report_seconds = fleet
    pushes, reports = clients / EPISODE_SECONDS * share, clients / report_seconds
    cores = pushes * (costs["push"] + push_bytes * costs["byte"]) + reports * costs["report"]
    return {
        "clients": clients,
        "share": share,
        "pushes/s": pushes,
        "reports/s": reports,
        "MB/s": pushes * push_bytes / 1e6,
        "cores": cores,
        "GB of memory": clients * memory / 1e9,
    }


async def measure(options: argparse.Namespace) -> dict[str, Any]:
    """All parts."""
    with serving() as server:
        costs = await unit_costs(server, options.calls)
    with serving() as server:
        idle = await idle_costs(server, 256)
    with serving() as server:
        fleet = await simulate(server, options.clients, options.seconds)
    push_bytes, full = fleet["bytes"] / fleet["pushes"], costs["full load"]
    per_push = full["push"] + push_bytes * full["byte"]
    rates = {"µs per push": per_push * 1e6, "pushes/s": 1 / per_push, "MB/s": push_bytes / per_push / 1e6}
    for name, each in costs.items():
        fleet[f"predicted CPU seconds, {name}"] = predicted(each, idle["CPU per second"], fleet)
    plans = [plan(full, idle["bytes per client"], push_bytes, each) for each in PLANS]
    return {"costs": costs, "idle": idle, "rates of one core": rates, "fleet": fleet, "plans": plans}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--clients", type=int, default=1_000, help="clients of the simulated fleet")
    parser.add_argument("--seconds", type=float, default=30.0, help="duration of the simulation")
    parser.add_argument("--calls", type=int, default=6_000, help="calls from which each cost is measured")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    results = asyncio.run(measure(options := parser.parse_args()))
    if options.json:
        print(json.dumps(results, indent=2))
        return
    for load, costs in results["costs"].items():
        print(f"costs under {load}")
        for name, value in costs.items():
            print(f"  {name:36}{value * 1e6:14,.4f} µs of CPU")
    for part in ("idle", "rates of one core", "fleet"):
        print(part)
        for name, value in results[part].items():
            print(f"  {name:36}{value:14,.3f}")
    for each in results["plans"]:
        print("plan: " + ", ".join(f"{name} {value:,.6g}" for name, value in each.items()))


if __name__ == "__main__":
    main()

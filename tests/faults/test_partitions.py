"""Partitions of a real connection: acting is never affected, and afterwards the client catches up."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from os import geteuid
from pathlib import Path

import numpy as np
import pytest
from tests.faults.fault_proxy import FAULTS, FaultProxy
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.server.loopback import StubTransport
from tests.storms import scaled

from rl4sys.client import Agent, connect
from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.experience import ArraySpec
from rl4sys.server import ServiceOptions
from rl4sys.server.transport.grpc_server import GrpcServer, ServerOptions

SEEN = (ArraySpec("observation", "float32", (3,)),)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GrpcServer]:
    options = ServerOptions(listen="127.0.0.1:0", data=tmp_path / "data", service=ServiceOptions(workers="threads"))
    found = GrpcServer(options)
    yield found
    found.drain()


def act(agent: Agent, episodes: int, rng: np.random.Generator) -> int:
    """Act, which returns even without a connection; returns the number of segments."""
    for _ in range(episodes):
        with agent.episode() as episode:
            for _ in range(4):
                episode.act({"queue": rng.normal(size=3).astype(np.float32)})
                episode.reward(float(rng.normal()))
            episode.end({"queue": rng.normal(size=3).astype(np.float32)})
    return episodes


@pytest.mark.slow
def test_acting_continues_through_every_partition_and_the_client_catches_up(
    server: GrpcServer, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    partitions = scaled(3, 50)
    tally("partitions through a fault proxy", partitions)
    rng = np.random.default_rng(0)
    direct = StubTransport(server.port)
    other = ScriptedClient(direct, join_request("other", PPO, "fleet"))
    with FaultProxy(server.port) as proxy:
        settings = {"client_id": "parted", "policy_id": "fleet", "server": f"127.0.0.1:{proxy.port}", "timeout": 5}
        settings |= {"observation": {"queue": 3}, "action": 2, "outbox": str(tmp_path / "outbox"), "send_interval": 0.0}
        with connect(settings) as agent:
            made = act(agent, 2, rng)
            for number in range(partitions):
                made += part(proxy, number, agent, other, rng)
                # Half-open connections only end with a deadline; other faults are detected at once.
                eventually(lambda made=made: _sent_or_thinned(agent) == made, 60.0)
                learner = server.service._learners.find("shared~fleet")
                assert learner is not None
                eventually(lambda learner=learner: agent.health().version == learner.version, 60.0)
            health = agent.health()
    direct.close()
    assert (health.backlog, health.drops, health.stopped) == (0, {}, None)


def _sent_or_thinned(agent: Agent) -> int:
    """Segments that were acknowledged, and those of episodes that the server asked to leave out."""
    health = agent.health()
    return health.acknowledged + health.thinned_episodes


def part(proxy: FaultProxy, number: int, agent: Agent, other: ScriptedClient, rng: np.random.Generator) -> int:
    """Act during a fault while the server learns from another client; the fault ends when acting is done."""
    proxy.worsen(FAULTS[number % len(FAULTS)])
    made = act(agent, 10, rng)
    threading.Event().wait(float(rng.uniform(0.0, 1.0)))
    first = 8 * number
    other.push(range(first, first + 8), version=other.joined.version)
    made += act(agent, 10, rng)
    proxy.heal()
    return made


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[tuple[str, str]]:
    """A network namespace behind a virtual cable: its name, and the address of this end."""
    if shutil.which("ip") is None or geteuid() != 0:
        pytest.skip("A true partition needs root and the command `ip`.")
    name, here, there = "rl4sys-storm", "rl4s-here", "rl4s-there"
    try:
        _ip("netns", "add", name)
        _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        _ip("addr", "add", "10.213.77.1/24", "dev", here)
        _ip("link", "set", here, "up")
        _ip("-n", name, "addr", "add", "10.213.77.2/24", "dev", there)
        _ip("-n", name, "link", "set", there, "up")
    except subprocess.CalledProcessError as error:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        pytest.skip(f"A true partition is not possible here: {error.stderr.decode().strip()}")
    yield name, here
    _ip("netns", "del", name)


@pytest.mark.faults
def test_a_network_partition_delays_experience_and_loses_none(tmp_path: Path, namespace: tuple[str, str]) -> None:
    from tests.faults.processes import Client

    name, cable = namespace
    options = ServerOptions(
        listen="10.213.77.1:0", data=tmp_path / "data", service=ServiceOptions(workers="threads"), insecure=True
    )
    server = GrpcServer(options)
    direct = GrpcTransport(ClientSettings("maker", f"10.213.77.1:{server.port}", insecure=True))
    ScriptedClient(direct, join_request("maker", PPO, "fleet", SEEN))
    client = Client(tmp_path, f"10.213.77.1:{server.port}", "far", "fleet", pause=0.05)
    try:
        client.start("ip", "netns", "exec", name)
        eventually(lambda: len(client.told()) > 5)
        for _ in range(scaled(1, 5)):
            _ip("link", "set", cable, "down")
            threading.Event().wait(3.0)
            before = len(client.told())
            _ip("link", "set", cable, "up")
            eventually(lambda before=before: len(client.told()) > before + 20, 90.0)
        health = client.finish()
        learner = server.service._learners.find("shared~fleet")
        assert learner is not None
        steps = learner.inbox.stored.clients["far"].steps
    finally:
        client.close()
        direct.close()
        server.drain()
    assert (health["flushed"], health["backlog"], health["drops"]) == (True, 0, {})
    assert steps == health["made"]

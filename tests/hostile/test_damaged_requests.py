"""Requests damaged on purpose: answered, or refused with a declared code, without effect on other clients."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from tests.hostile.attacks import DECLARED, RPCS, Aborted, Attacker, Handlers
from tests.server.clients import PPO, ScriptedClient, eventually, join_request
from tests.storms import scaled

from rl4sys.records import Durability
from rl4sys.server import (
    GrpcServer,
    InProcessTransport,
    ServerOptions,
    ServiceLimits,
    ServiceOptions,
    TrainingService,
)

OPTIONS = ServiceOptions("threads", Durability.MEMORY, ServiceLimits(max_learners=6), restart_seconds=0.01)


def learned(service: TrainingService, halfway: Callable[[], None] = lambda: None) -> str:
    """The digest of a learner after 12 segments of a good client, with an interruption in between."""
    client = ScriptedClient(InProcessTransport(service), join_request("good"))
    client.push(range(6))
    halfway()
    assert client.push(range(6, 12)).acknowledged[0].last == 11
    learner = service._learners.find("good")
    assert learner is not None
    eventually(lambda: learner.version == 3)
    return hashlib.sha256(client.weights(want=3).tobytes()).hexdigest()


@pytest.mark.slow
@pytest.mark.parametrize("rpc", RPCS)
def test_damaged_requests_are_answered_or_refused_and_do_not_affect_other_clients(
    rpc: str, tally: Callable[[str, int], None]
) -> None:
    count = scaled(20_000, 1_000_000)
    tally("mutated messages per RPC", count)
    outcomes: Counter[str] = Counter()
    with TrainingService(None, OPTIONS) as quiet:
        expected = learned(quiet)
    with TrainingService(None, OPTIONS) as service:
        attacker = Attacker(service)
        assert learned(service, lambda: outcomes.update(attacker.attack(rpc, n) for n in range(count))) == expected
    # Damage that is always refused at once would test nothing.
    assert outcomes["OK"] > count / 50, outcomes
    assert sum(outcomes.values()) - outcomes["OK"] > count / 10, outcomes


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GrpcServer]:
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path, service=OPTIONS))
    yield server
    server.drain()


@pytest.mark.slow
def test_damaged_requests_over_a_real_socket_are_answered_or_refused(
    server: GrpcServer, tally: Callable[[str, int], None]
) -> None:
    count = scaled(250, 20_000)
    tally("mutated messages over a socket", count * len(RPCS))
    attacker = Attacker(server.service)

    def attack() -> None:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            for rpc in RPCS:
                path, is_stream = f"/rl4sys.v1.Training/{rpc}", rpc in ("Pull", "Watch")
                method = channel.unary_stream(path) if is_stream else channel.unary_unary(path)
                for index in range(count):
                    data = attacker.damaged(rpc, index)
                    # There may be no new version: the watch is then cancelled.
                    seconds = 0.05 if rpc == "Watch" else 30.0
                    try:
                        reply = method(data, timeout=seconds)
                        if is_stream:
                            next(reply, None)
                            reply.cancel()
                    except grpc.RpcError as error:
                        allowed = DECLARED[rpc] | ({"DEADLINE_EXCEEDED"} if rpc == "Watch" else set())
                        if error.code().name not in allowed:
                            raise AssertionError((rpc, index, data.hex(), error.details())) from error

    # The good client joins first: damaged joins may use up the learners that a server allows.
    learned(server.service, attack)


STRANGE_PARAMETERS = {
    "deep lists": "[" * 30_000,
    "deep objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "deep within": '{"algorithm": ' + '{"a":' * 900 + "1" + "}" * 901,
    "half a surrogate": '{"algorithm": {"\\ud800": 1}}',
    "half a surrogate as a value": '{"algorithm": {"lr": "\\udfff"}}',
    "half a surrogate as a name": '{"algorithm": {"name": "\\ud800"}}',
    "a zero byte": '{"\\u0000": "\\u0000"}',
    "many digits": '{"seed": ' + "9" * 5_000 + "}",
    "a negative seed": '{"seed": -1}',
    "not a number": '{"algorithm": {"lr": NaN}}',
    "infinite": '{"algorithm": {"lr": Infinity, "gamma": -Infinity}}',
    "beyond float": '{"algorithm": {"lr": 1e999}}',
    "a list": "[]",
    "a text": '"PPO"',
    "nothing": "null",
    "an algorithm that is a list": '{"algorithm": [1, 2]}',
    "a buffer that is a number": '{"buffer": 7}',
    "a buffer of a strange type": '{"buffer": {"type": ["uniform"]}}',
    "a network that is a text": '{"network": "mlp"}',
    "no layers": '{"network": {"actor": {"hidden_dims": [0]}}}',
    "negative layers": '{"network": {"actor": {"hidden_dims": [-5]}}}',
    "many layers": json.dumps({"network": {"actor": {"hidden_dims": [1] * 20_000}}}),
    "a giant layer": '{"network": {"actor": {"hidden_dims": [4000000000, 4000000000]}}}',
    "a large layer": '{"network": {"actor": {"hidden_dims": [30000, 30000]}}}',
    "a layer beyond 64 bits": '{"network": {"actor": {"hidden_dims": [99999999999999999999]}}}',
    "many threads": '{"threads": 2000000000}',
    "a path as a network": '{"network": {"actor": {"type": "../../etc/passwd"}}}',
    "interpolation": '{"algorithm": {"lr": "${oc.env:HOME}"}}',
    "twice the same": '{"seed": 1, "seed": "x"}',
}


@pytest.mark.parametrize("existing", [False, True], ids=["new learner", "existing learner"])
@pytest.mark.parametrize("kind", STRANGE_PARAMETERS)
def test_invalid_parameters_are_refused_with_a_message(kind: str, existing: bool) -> None:
    request = join_request("a")
    request.algorithm.parameters_json = STRANGE_PARAMETERS[kind]
    with TrainingService(None, OPTIONS) as service:
        if existing:
            ScriptedClient(InProcessTransport(service), join_request("a", PPO))
        with pytest.raises(Aborted) as refused:
            Handlers(service).call("Join", request.SerializeToString())
        assert refused.value.code in ("INVALID_ARGUMENT", "FAILED_PRECONDITION")
        assert len(refused.value.details) > 20
        assert ScriptedClient(InProcessTransport(service), join_request("b")).joined.learner == "b"

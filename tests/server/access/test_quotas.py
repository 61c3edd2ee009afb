from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, acknowledged, join_request
from tests.server.loopback import StubTransport

from rl4sys.records import Deduplication
from rl4sys.server import (
    ANYONE,
    Caller,
    GrpcServer,
    InProcessTransport,
    ServerOptions,
    ServiceLimits,
    ServiceOptions,
    TrainingService,
)
from rl4sys.server.access.quotas import Bucket
from rl4sys.server.options import Rates
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

Start = Callable[..., InProcessTransport]


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def limited(tmp_path: Path, clock: Clock) -> Iterator[Start]:
    services: list[TrainingService] = []

    def start(caller: Caller = ANYONE, **limits: object) -> InProcessTransport:
        options = ServiceOptions(workers="threads", limits=ServiceLimits.model_validate(limits))
        services.append(TrainingService(tmp_path / str(len(services)), options, clock))
        return InProcessTransport(services[-1], caller)

    yield start
    for service in services:
        service.drain()


def refused(client: ScriptedClient, sequence: int) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        client.push([sequence])
    assert failed.value.code is Code.RESOURCE_EXHAUSTED
    assert failed.value.failure.reason is FailureReason.QUOTA
    return failed.value


def test_a_bucket_allows_one_second_of_its_rate_at_once_and_then_the_rate() -> None:
    bucket = Bucket(10.0, now=0.0)
    assert bucket.wait(10.0, 10.0, now=0.0) == 0.0
    bucket.take(10.0)
    assert bucket.wait(5.0, 10.0, now=0.1) == pytest.approx(0.4)
    assert bucket.wait(5.0, 10.0, now=0.5) == pytest.approx(0.0)
    assert bucket.wait(5.0, 100.0, now=0.5) == pytest.approx(0.0), "a faster rate counts at once"


def test_an_amount_larger_than_the_bucket_passes_when_it_is_full_and_delays_the_next() -> None:
    bucket = Bucket(10.0, now=0.0)
    assert bucket.wait(50.0, 10.0, now=0.0) == 0.0
    bucket.take(50.0)
    assert bucket.wait(1.0, 10.0, now=0.0) == pytest.approx(4.1)


def test_a_client_that_pushes_too_fast_succeeds_after_the_given_delay(limited: Start, clock: Clock) -> None:
    client = ScriptedClient(limited(client_rates={"steps_per_second": 16}), join_request("a"))
    client.push(range(2))
    failure = refused(client, 2)
    assert failure.failure.retry_after_ms == 500
    assert "16 steps per second" in str(failure)
    clock.now += 0.499
    refused(client, 2)
    clock.now += 0.001
    assert acknowledged(client.push([2])) == [2]


def test_each_client_has_its_own_quota(limited: Start) -> None:
    transport = limited(client_rates={"bytes_per_second": 100})
    first, second = (ScriptedClient(transport, join_request(name)) for name in "ab")
    first.push([0])
    refused(first, 1)
    assert acknowledged(second.push([0])) == [0]


def test_the_clients_of_a_token_share_its_rate(limited: Start) -> None:
    transport = limited(Caller(token="t"), token_rates={"bytes_per_second": 100})
    first, second = (ScriptedClient(transport, join_request(name)) for name in "ab")
    first.push([0])
    assert "This token has used up its 100 bytes per second" in str(refused(second, 0))


def test_a_push_that_one_quota_refuses_costs_the_other_nothing(limited: Start, clock: Clock) -> None:
    transport = limited(
        Caller(token="t", rates=Rates(steps_per_second=100)),
        client_rates={"steps_per_second": 8},
        token_rates={"bytes_per_second": 1e9, "steps_per_second": 1},
    )
    first, second = (ScriptedClient(transport, join_request(name)) for name in "ab")
    first.push([0])
    for _ in range(50):
        refused(first, 1)
    assert acknowledged(second.push([0])) == [0]


def test_a_refusal_is_counted_and_junk_cannot_hide_its_bytes(limited: Start) -> None:
    transport = limited(client_rates={"bytes_per_second": 100, "steps_per_second": 1e9})
    client = ScriptedClient(transport, join_request("a"))
    client.push_bytes({0: b"\xff" * 200})
    refused(client, 1)
    assert transport.status(status_pb2.StatusRequest(), 5.0).clients[0].delayed_pushes == 1


def test_the_epochs_of_a_client_are_limited_and_none_is_forgotten(limited: Start) -> None:
    transport = limited(max_epochs=3)
    client, other = (ScriptedClient(transport, join_request(name)) for name in "ab")
    for client.epoch in (7, 8, 9):
        client.push([0])
    client.epoch = 10
    failure = refused(client, 0)
    assert "3 epochs" in str(failure)
    assert failure.failure.retry_after_ms > 0
    client.epoch = 8
    assert client.push(range(2)).repeated_segments == 1
    assert acknowledged(other.push([0])) == [0]


def test_epochs_are_counted_by_client_even_after_a_restart() -> None:
    seen = Deduplication()
    for epoch in (1, 2, 2, 3):
        seen.add("a", epoch, 0)
    seen.add("b", 1, 0)
    again = Deduplication()
    again.restore(seen.state())
    for each in (seen, again):
        assert (each.epochs("a"), each.epochs("b"), each.epochs("c")) == (3, 1, 0)
        assert each.knows_epoch("a", 3)
        assert not each.knows_epoch("b", 3)


def test_the_learners_of_a_token_are_limited_even_after_a_restart(tmp_path: Path) -> None:
    options = ServiceOptions(workers="threads", limits=ServiceLimits(max_learners_per_token=2))
    for names in ("ab", "ab"):
        with TrainingService(tmp_path, options) as service:
            transport = InProcessTransport(service, Caller(token="t"))
            for name in names:
                ScriptedClient(transport, join_request(name))
            with pytest.raises(CallFailed, match="This token has created 2 learners") as failed:
                transport.join(join_request("c"), 10.0)
            assert failed.value.failure.reason is FailureReason.QUOTA
            if names == "ab":
                assert InProcessTransport(service, Caller(token="u")).join(join_request("a"), 10.0).learner == "a"
    with TrainingService(tmp_path, options) as service:
        ScriptedClient(InProcessTransport(service, Caller(token="u")), join_request("d"))


def test_a_token_with_too_many_sessions_loses_only_its_own(limited: Start) -> None:
    transport = limited(Caller(token="t"), max_sessions_per_token=2)
    modest = ScriptedClient(InProcessTransport(transport._service, Caller(token="u")), join_request("a"))
    greedy = [ScriptedClient(transport, join_request("b")) for _ in range(5)]
    modest.push([0])
    for client in greedy[:3]:
        with pytest.raises(CallFailed, match="Join again"):
            client.push([0])
    for client in greedy[3:]:
        client.push([0])


def test_the_rate_of_a_token_holds_over_a_socket(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"{'a' * 20} bytes_per_second=1e2 a\n{'b' * 20} b\n")
    options = ServerOptions("127.0.0.1:0", tmp_path / "data", tmp_path / "tokens", service=ServiceOptions("threads"))
    server = GrpcServer(options)
    try:
        slow = ScriptedClient(StubTransport(server.port, "a" * 20), join_request("a"))
        fast = ScriptedClient(StubTransport(server.port, "b" * 20), join_request("b"))
        slow.push([0])
        assert refused(slow, 1).failure.retry_after_ms > 0
        assert acknowledged(fast.push(range(9))) == list(range(9))
    finally:
        server.drain()

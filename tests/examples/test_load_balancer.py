"""The load balancer of the examples: comparison by blocks, and the proxy over real sockets."""

from __future__ import annotations

import asyncio
import importlib
import random
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import rl4sys
from rl4sys.environments.balancing import (
    BASELINE,
    RATE,
    RULES,
    BackendView,
    SimulatedService,
    Speed,
    arrivals,
    speeds,
)
from rl4sys.environments.balancing.requests import Disturbance

from .processes import EXAMPLES


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of the example by name."""
    # Here `examples` is the package of tests.
    monkeypatch.syspath_prepend(EXAMPLES)

    class Modules:
        def __getattr__(self, name: str) -> ModuleType:
            return importlib.import_module(f"load_balancer.{name}")

    return Modules()


def test_every_rule_gets_as_many_blocks_in_random_order(example: Any) -> None:
    blocks = example.switchback.plan(["a", "b"], 20, 100.0, np.random.default_rng(0))
    assert [block.start for block in blocks] == [100.0 + example.switchback.BLOCK * number for number in range(40)]
    assert [block.rule for block in blocks].count("a") == 20
    assert [block.rule for block in blocks][::2] != ["a"] * 20


def test_with_chaos_every_block_has_a_whole_slow_part_and_time_to_recover(example: Any) -> None:
    chaos = Disturbance(slowdown=8.0, period=30.0, slow_for=10.0)
    start = example.switchback.comparison_start(417.0, 100.0, chaos)
    blocks = example.switchback.plan(["a", "b"], 3, start, np.random.default_rng(0), chaos.period)
    assert example.switchback.block_seconds(chaos) == chaos.period
    assert start == 440.0
    for block in blocks:
        slow = [second for second in range(30) if chaos.factor(block.start - 100.0 + second) > 1.0]
        assert slow == list(range(10, 20))


def test_without_chaos_a_comparison_begins_at_once_with_short_blocks(example: Any) -> None:
    assert example.switchback.comparison_start(417.0, 100.0, None) == 417.0
    assert example.switchback.block_seconds(None) == example.switchback.BLOCK


def test_a_comparison_cuts_what_is_left_of_the_rule_before(example: Any) -> None:
    rules = enumerate(("base", "fast", "base", "fast"))
    blocks = [example.switchback.Block(rule, 10.0 * number, 10.0 * number + 10.0) for number, rule in rules]
    at = np.arange(0.0, 40.0, 0.1)
    # Twice as fast, but for the first two seconds of a block.
    seconds = np.where(((at // 10) % 2 == 1) & (at % 10 >= 2.0), 0.5, 1.0)
    base, fast = example.switchback.compare(blocks, at, seconds, "base", np.random.default_rng(0))
    assert base.mean_ratio.value == 1.0
    assert fast.mean_ratio.value == fast.p99_ratio.high == pytest.approx(0.5)
    assert fast.requests == 160


def test_lines_of_the_generator_become_latencies_and_failures(example: Any) -> None:
    at, seconds, failed = example.processes.read_latencies("1.0 0.010000 200\n1.5 0.020000 502\n2.0 0.030000 200\n")
    assert (at.tolist(), seconds.tolist(), failed) == ([1.0, 2.0], [0.01, 0.03], 1)


async def _through_a_proxy(example: Any, requests: int, *, kill: bool) -> tuple[list[int], Any]:
    servers = [
        await asyncio.start_server(example.backend.Backend(Speed(100.0), 0.0).serve, "127.0.0.1", 0) for _ in range(2)
    ]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    proxy = example.proxy.Proxy(ports, example.choosers.RuleChooser(RULES["round robin"](random.Random(0))))
    front = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    if kill:
        servers[1].close()
    connections = example.http.Connections(front.sockets[0].getsockname()[1])
    answers = await asyncio.gather(*(connections.ask(b"GET /small HTTP/1.1\r\n\r\n") for _ in range(requests)))
    connections.close()
    proxy.close()
    for server in (front, *servers):
        server.close()
    return [head.status for head, _ in answers], proxy


def test_the_proxy_passes_requests_on_and_counts_answers(example: Any) -> None:
    statuses, proxy = asyncio.run(_through_a_proxy(example, 20, kill=False))
    assert statuses == [200] * 20
    assert proxy.passed == 20
    assert [view.in_flight for view in proxy.views] == [0, 0]


def test_a_dead_backend_is_answered_as_a_bad_gateway(example: Any) -> None:
    statuses, proxy = asyncio.run(_through_a_proxy(example, 20, kill=True))
    assert sorted(statuses) == [200] * 10 + [502] * 10
    assert proxy.failed == {1: 10}
    assert [view.in_flight for view in proxy.views] == [0, 0]


def test_the_learned_policy_exploits_in_the_comparison_and_records_nothing(example: Any, tmp_path: Path) -> None:
    server = pytest.importorskip("rl4sys.server")
    service = server.TrainingService(tmp_path, server.ServiceOptions(workers="threads"))
    transport = server.InProcessTransport(service)
    learning = example.live.client_settings(1)
    learning["algorithm"] |= {"imitate": {"decisions": 200, "epochs": 1}}
    try:
        with (
            rl4sys.connect(learning, transport=transport) as explorer,
            rl4sys.connect(example.live.exploiting(learning), transport=transport) as exploiter,
        ):
            policy = example.policy_choosers.PolicyChoosers(explorer, exploiter, RULES[BASELINE](random.Random(0)))
            simulated = SimulatedService(speeds(chaos=False), arrivals(RATE, np.random.default_rng(0)))
            while not policy.version:
                _decide(policy.learning, simulated, 300)
                explorer.flush()
                policy.refresh()
            _decide(policy.learned, simulated, 100)
            choices = {policy.learned.choose(simulated.views, 0, simulated.now) for _ in range(20)}
            assert (len(choices), policy.counts()["learned"]) == (1, {"policy": 120})
            assert exploiter.flush()
            assert (exploiter.health().decisions, exploiter.health().acknowledged) == (120, 0)
    finally:
        service.drain(10.0)


def _decide(chooser: Any, service: SimulatedService, requests: int) -> None:
    for _ in range(requests):
        number, decision = chooser.choose(service.views, service.kind, service.now)
        chooser.finished(decision, service.assign(number))
        service.arrive()


def test_until_a_policy_has_imitated_least_connections_that_rule_decides(example: Any) -> None:
    guard = example.policy_choosers.BalancingGuard(lambda: None)
    choose = example.choosers.guarded_rule(lambda observation: 3, guard, RULES[BASELINE](random.Random(0)))
    views = [BackendView() for _ in range(4)]
    views[0].sent(0, 0.0)
    assert choose(views, 0, 1.0) in (1, 2)
    assert guard.counts == {"stale policy": 1}


def test_the_simulated_baseline_has_the_requests_and_the_phase_of_the_live_run(example: Any) -> None:
    # Requests began 25 s after the first period of the disturbance; the baseline has every other period of 30 s.
    blocks = [example.switchback.Block(BASELINE, start, start + 30.0) for start in (100.0, 160.0)]
    found = example.simulated.simulated_baseline(blocks, 25.0, RATE, 3, chaos=True)
    sent = [25.0 + request.at for request in islice(arrivals(RATE, np.random.default_rng(3)), 60_000)]
    assert found.at.tolist() == [at for at in sent if 102.0 <= at < 130.0 or 162.0 <= at < 190.0]
    is_slow = found.at % 30.0 >= 20.0
    assert found.seconds[is_slow].mean() > found.seconds[~is_slow & (found.at % 30.0 > 5.0)].mean()

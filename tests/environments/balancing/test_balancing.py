"""A balanced service in simulation: requests, backends, rules and the guard."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import takewhile

import numpy as np
import pytest

from rl4sys.environments.balancing import (
    BASELINE,
    CLASSES,
    FEATURES,
    OVERHEAD,
    RATE,
    RULES,
    BackendView,
    BalancingGuard,
    Disturbance,
    Request,
    SimulatedService,
    Speed,
    arrivals,
    rows,
    simulate,
    speeds,
)


def test_requests_arrive_at_the_rate_and_in_the_shares_that_are_asked_for() -> None:
    taken = list(takewhile(lambda request: request.at < 100.0, arrivals(200.0, np.random.default_rng(0))))
    assert len(taken) == pytest.approx(20_000, rel=0.03)
    for number, each in enumerate(CLASSES):
        assert sum(request.kind == number for request in taken) / len(taken) == pytest.approx(each.share, rel=0.15)


def test_work_takes_longer_while_a_backend_is_disturbed() -> None:
    speed = Speed(4.0, Disturbance(slowdown=8.0, period=30.0, slow_for=10.0))
    assert speed.finish(0.0, 4.0) == 1.0
    assert speed.finish(25.0, 1.0) == 27.0
    # Half of the work before the disturbance begins at 20 s, the rest at an eighth of the speed.
    assert speed.finish(19.5, 4.0) == pytest.approx(20.0 + 2.0 / 0.5)


def given(*requests: Request) -> Iterator[Request]:
    yield from requests
    yield Request(1e9, 0)


def test_a_backend_works_on_requests_in_order() -> None:
    service = SimulatedService([Speed(1.0)], given(Request(0.0, 1), Request(0.01, 0)))
    assert service.assign(0) == pytest.approx(0.050 + OVERHEAD)
    service.arrive()
    assert service.views[0].in_flight == 1
    assert service.assign(0) == pytest.approx(0.045 + OVERHEAD)
    service.arrive()
    assert service.views[0].in_flight == 0


def test_the_view_of_a_backend_finds_its_speed_and_what_is_overdue() -> None:
    view, now = BackendView(), 0.0
    for _ in range(50):
        sent, now = now, now + CLASSES[0].work / 2.0
        view.sent(0, sent)
        view.answered(0, sent, now)
    assert view.speed == pytest.approx(2.0, rel=0.05)
    view.sent(1, now)
    assert view.overdue(now + 0.05) == pytest.approx(2.0, rel=0.1)
    assert view.expected(1) == pytest.approx(0.05, rel=0.1)


def test_features_are_finite_for_idle_and_for_busy_backends() -> None:
    views = [BackendView() for _ in range(4)]
    for _ in range(100):
        views[0].sent(2, 0.0)
    found = rows(views, 0, 10.0)
    assert found.shape == (4, FEATURES)
    assert np.isfinite(found).all()


def test_rules_do_what_their_names_say() -> None:
    views = [BackendView() for _ in range(4)]
    for number, count in enumerate((3, 1, 2, 4)):
        for _ in range(count):
            views[number].sent(0, 0.0)
    rng = random.Random(0)
    assert RULES[BASELINE](rng)(views, 0, 0.0) == 1
    assert RULES["weighted connections"](rng)(views, 0, 0.0) == 3
    robin = RULES["round robin"](rng)
    assert [robin(views, 0, 0.0) for _ in range(5)] == [0, 1, 2, 3, 0]


def test_knowing_more_helps_in_the_simulation() -> None:
    found = {
        name: simulate(speeds(chaos=False), arrivals(RATE, np.random.default_rng(1)), make(random.Random(1)), 30.0).mean
        for name, make in RULES.items()
    }
    assert found["least expected work"] < found["weighted connections"] < found[BASELINE] < found["random"]


def test_the_guard_steps_in_and_counts_why() -> None:
    views = [BackendView() for _ in range(2)]
    age: float | None = 0.0
    guard = BalancingGuard(lambda: age)
    assert not guard.steps_in(views, 0.0)
    views[0].sent(0, 0.0)
    assert guard.steps_in(views, 4.0)
    for _ in range(70):
        views[1].sent(0, 1.0)
    assert guard.steps_in(views, 1.0)
    age = None
    assert guard.steps_in(views, 1.0)
    assert guard.counts == {"policy": 1, "too old a wait": 1, "too much in flight": 1, "stale policy": 1}

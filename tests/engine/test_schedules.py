"""Schedules multiply settings by factors that depend on the steps of a run only."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from algorithms.problems import problem
from rl4sys.algorithms import ALGORITHMS
from rl4sys.config import ConfigError
from rl4sys.engine import SCHEDULES, Policies, Progress, TrainState
from rl4sys.networks import OptimizerSettings
from rl4sys.policy import Head
from rl4sys.server.workers.learner_config import resolve


def halving(done: float) -> float:
    return 0.5**done


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ({"type": "linear"}, [1.0, 0.75, 0.5, 0.0]),
        ({"type": "linear", "end": 0.5, "start_fraction": 0.25, "end_fraction": 0.5}, [1.0, 1.0, 0.5, 0.5]),
        ({"type": "cosine"}, [1.0, 0.5 + math.sqrt(0.125), 0.5, 0.0]),
        ({"type": "step", "at": [0.25, 0.9], "decay": 0.5}, [1.0, 0.5, 0.5, 0.25]),
        ({"type": "linear", "steps": 50}, [1.0, 0.5, 0.0, 0.0]),
        ({"type": "function", "function": f"{__name__}:halving"}, [1.0, 0.5**0.25, 0.5**0.5, 0.5]),
    ],
)
def test_a_schedule_gives_a_factor_at_each_point_of_a_run(schedule: dict[str, Any], expected: list[float]) -> None:
    found = [SCHEDULES.parse(schedule).factor(Progress(steps, 100)) for steps in (0, 25, 50, 100)]
    assert found == pytest.approx(expected)


def test_nothing_changes_in_a_live_system_unless_steps_are_given() -> None:
    live = Progress(10_000, None)
    assert SCHEDULES.parse({"type": "linear"}).factor(live) == 1.0
    assert SCHEDULES.parse({"type": "linear", "steps": 20_000}).factor(live) == 0.5


def test_a_schedule_may_be_given_by_its_type_or_as_a_function() -> None:
    given = ALGORITHMS.parse({"name": "ppo", "schedules": {"lr": "cosine", "clip_ratio": halving}}).schedules
    assert given["lr"] == SCHEDULES.parse({"type": "cosine"})
    assert given["clip_ratio"] == SCHEDULES.parse({"type": "function", "function": f"{__name__}:halving"})
    local = ALGORITHMS.parse({"name": "ppo", "schedules": {"lr": lambda done: 1.0 - done}}).schedules["lr"]
    assert local.factor(Progress(30, 100)) == pytest.approx(0.7)


def test_a_function_that_returns_no_factor_is_named() -> None:
    wrong = ALGORITHMS.parse({"name": "ppo", "schedules": {"lr": lambda done: -1.0}}).schedules["lr"]
    with pytest.raises(ConfigError, match=r"returned -1\.0 for 0\.500; expected a factor from 0"):
        wrong.factor(Progress(1, 2))


def test_a_setting_that_cannot_have_a_schedule_is_refused_with_those_that_can() -> None:
    with pytest.raises(ConfigError, match=r"'clip_rate' cannot have a schedule here; did you mean 'clip_ratio'"):
        ALGORITHMS.parse({"name": "ppo", "schedules": {"clip_rate": "linear"}})
    with pytest.raises(ConfigError, match="it is learned; schedule target_entropy"):
        ALGORITHMS.parse({"name": "sac", "schedules": {"temperature": "linear"}})


def test_a_server_calls_no_functions_by_name() -> None:
    with pytest.raises(ConfigError, match="type function are for local runs"):
        resolve("ppo", {"algorithm": {"schedules": {"lr": "time:sleep"}}})


def test_learning_rates_follow_their_own_schedule_or_that_of_the_actor() -> None:
    schedules = {"lr": SCHEDULES.parse({"type": "linear"}), "critic_lr": SCHEDULES.parse({"type": "step", "at": [0]})}
    asked = replace(problem(), schedules=schedules)
    program, value = asked.value_program()
    head = Head("deterministic", (value,))
    state = TrainState(asked, Policies.over(asked.action, program, head, head))
    named = {
        name: state.scalar(name, 0.0, OptimizerSettings(1.0, anneal_lr=True, lr_setting=name)).optimizer
        for name in ("lr", "critic_lr", "temperature_lr")
    }
    state.advance(Progress(25, 100))
    assert [named[name].lr for name in named] == pytest.approx([0.75, 0.1, 0.75])

"""Heuristics that decide from observations schedule as the heuristics themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rl4sys.environments.scheduling import (
    ProtocolName,
    SchedulingEpisode,
    SchedulingRules,
    generate,
    schedule_by,
)
from rl4sys.environments.scheduling.incumbents import shortest, shortest_with_reserve

JOBS = generate(2_000, 256, np.random.default_rng(3)).span(700, 200)


def starts(rule: Callable[[Any], int], protocol: ProtocolName) -> list[float]:
    episode = SchedulingEpisode(JOBS, SchedulingRules(protocol, most=512))
    while not episode.over:
        rows, context = episode.observe()
        episode.choose(rule({"candidates": rows, "context": context}))
    return episode.schedule().start.tolist()


@pytest.mark.parametrize("protocol", ["commit", "wait"])
def test_the_shortest_job_first_is_that_of_the_heuristic(protocol: ProtocolName) -> None:
    assert starts(shortest, protocol) == schedule_by("sjf", JOBS, protocol).start.tolist()


def test_a_reserve_of_a_sixteenth_is_that_of_the_expert() -> None:
    expert = schedule_by("sjf", JOBS, "wait", keep_free=16).start.tolist()
    assert starts(shortest_with_reserve, "wait") == expert
    assert expert != schedule_by("sjf", JOBS, "wait").start.tolist()

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from rl4sys.environments.scheduling import (
    BatchScheduling,
    ProtocolName,
    SchedulingEpisode,
    SchedulingRules,
    UnknownProtocol,
    WorkloadTooShort,
    measure,
    schedule_by,
    write_swf,
)
from rl4sys.environments.scheduling.features import CONTEXT, ROW

from .workloads import generated, six_jobs

REQUESTED, FITS, WAITS = 0, 5, 10


def shortest(episode: SchedulingEpisode) -> int:
    return int(np.argmin(episode.jobs.requested[episode.offered]))


def scheduled_by_shortest(episode: SchedulingEpisode) -> None:
    while not episode.over:
        episode.choose(shortest(episode))


@pytest.mark.filterwarnings("ignore:.*:UserWarning")
def test_the_environment_passes_the_check_of_gymnasium() -> None:
    # With two choices, which exist at every decision: the check takes any action.
    check_env(BatchScheduling(length=20, most=2), skip_render_check=True)


@pytest.mark.parametrize("protocol", ["commit", "backfill", "easy", "wait"])
def test_choosing_the_shortest_job_is_sjf(protocol: ProtocolName) -> None:
    jobs = generated(300, seed=5)
    episode = SchedulingEpisode(jobs, SchedulingRules(protocol, most=400))
    scheduled_by_shortest(episode)
    np.testing.assert_array_equal(episode.schedule().start, schedule_by("sjf", jobs, protocol).start)


def test_six_jobs_are_offered_as_computed_by_hand() -> None:
    episode = SchedulingEpisode(six_jobs(), SchedulingRules("wait"))
    seen = []
    while not episode.over:
        seen.append((episode.machine.now, episode.offered.tolist(), episode.may_wait))
        episode.choose(0)
    assert seen == [
        (0, [0], True),
        (2, [2], True),
        (3, [3], True),
        (6, [4, 5], True),
        (8, [5], True),
        (20, [1], True),
    ]


def test_waiting_passes_the_time_to_the_next_event() -> None:
    episode = SchedulingEpisode(six_jobs(), SchedulingRules("wait"))
    episode.choose(len(episode.offered))
    assert (episode.machine.now, episode.offered.tolist(), episode.may_wait) == (1, [0, 1], True)


def test_the_last_job_cannot_wait_for_nothing() -> None:
    episode = SchedulingEpisode(six_jobs().span(0, 1), SchedulingRules("wait"))
    assert not episode.may_wait
    with pytest.raises(ValueError, match="1 was chosen of 1 jobs, waiting not allowed"):
        episode.choose(1)


@pytest.mark.parametrize("protocol", ["commit", "wait"])
def test_the_return_is_the_cost_relative_to_sjf(protocol: ProtocolName) -> None:
    environment = BatchScheduling(protocol=protocol, length=100, mix=0.3)
    environment.reset(seed=1)
    total, over = 0.0, False
    while not over:
        _, reward, over, _, info = environment.step(shortest(environment.episode))
        total += reward
    jobs = environment.episode.jobs
    by_sjf = measure(schedule_by("sjf", jobs, protocol))
    waited, slowed = environment._reference
    assert info["slowdown"] == pytest.approx(by_sjf.slowdown)
    assert total == pytest.approx(-100 * (0.3 * by_sjf.wait / waited + 0.7 * (by_sjf.slowdown - 1.0) / slowed))


@pytest.mark.parametrize("protocol", ["commit", "wait"])
def test_beside_sjf_the_return_is_what_sjf_costs_more(protocol: ProtocolName) -> None:
    totals = {}
    for choose in (shortest, lambda episode: 0):
        for beside in (False, True):
            environment = BatchScheduling(protocol=protocol, length=100, mix=0.3, beside_sjf=beside)
            environment.reset(seed=1)
            over, total = False, 0.0
            while not over:
                _, reward, over, _, _ = environment.step(choose(environment.episode))
                total += reward
            totals[choose, beside] = total
    assert totals[shortest, True] == pytest.approx(0.0, abs=1e-9)
    first = next(choose for choose, _ in totals if choose is not shortest)
    assert totals[first, True] == pytest.approx(totals[first, False] - totals[shortest, False])


def test_rows_and_context_describe_what_may_be_chosen() -> None:
    environment = BatchScheduling(length=50, protocol="wait")
    observation, _ = environment.reset(seed=2)
    over = False
    while not over:
        rows, context = observation["candidates"], observation["context"]
        assert rows.shape[1] == len(ROW)
        assert context.shape == (len(CONTEXT),)
        assert np.isfinite(rows).all()
        assert (rows[:, FITS] + rows[:, WAITS]).tolist() == [1.0] * len(rows)
        assert np.abs(rows).max() < 3.0
        observation, _, over, _, _ = environment.step(0)


def test_no_more_candidates_are_offered_than_allowed() -> None:
    for protocol in ("commit", "wait"):
        episode = SchedulingEpisode(generated(300), SchedulingRules(protocol, most=4))
        while not episode.over:
            rows, _ = episode.observe()
            assert 1 <= len(rows) <= 4
            episode.choose(len(rows) - 1)


@pytest.mark.parametrize("protocol", ["commit", "wait"])
def test_the_guard_starts_a_job_that_has_waited_too_long(protocol: ProtocolName) -> None:
    jobs = generated(400, seed=7)
    free, guarded = (SchedulingEpisode(jobs, SchedulingRules(protocol, 400, limit)) for limit in (None, 7200.0))
    for episode in (free, guarded):
        scheduled_by_shortest(episode)
    assert free.guarded == 0
    assert guarded.guarded > 0
    assert guarded.schedule().wait.max() < free.schedule().wait.max()


def test_a_sequence_can_be_asked_for(tmp_path: Path) -> None:
    jobs = generated(100)
    write_swf(jobs, tmp_path / "jobs.swf")
    environment: Any = gymnasium.make(
        "rl4sys/BatchScheduling-v0", trace=str(tmp_path / "jobs.swf"), part="all", length=10
    ).unwrapped
    environment.reset(options={"first": 7})
    np.testing.assert_array_equal(environment.episode.jobs.submit, jobs.submit[7:17])


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ({"length": 7000}, WorkloadTooShort, "part 'training' of the trace has 6000 jobs"),
        ({"protocol": "waits"}, UnknownProtocol, "did you mean 'wait'"),
        ({"part": "tests"}, ValueError, "part='tests' is none of training, validation, test"),
        ({"mix": 1.5}, ValueError, "mix=1.5: expected the share"),
        ({"most": 1}, ValueError, "most=1: at least 2"),
        ({"max_wait": 0.0}, ValueError, "max_wait=0.0: expected seconds above 0"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], error: type[Exception], complaint: str) -> None:
    with pytest.raises(error, match=complaint):
        BatchScheduling(**arguments)

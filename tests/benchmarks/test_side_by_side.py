"""The adapter of the side-by-side benchmark: a system that asks a library which wants to own the loop."""

from __future__ import annotations

import contextlib
import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SIDE_BY_SIDE = Path(__file__).parents[2] / "benchmarks" / "side_by_side"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Modules of the benchmark by name."""
    monkeypatch.syspath_prepend(SIDE_BY_SIDE)

    class Modules:
        def __getattr__(self, name: str) -> Any:
            return importlib.import_module(name)

    return Modules()


class FakePeer:
    """A library that owns its loop: always the first feature as the action, and a list of what it saw."""

    def __init__(self, modules: Any, steps: int) -> None:
        self.seen: list[tuple[float, bool, bool]] = []
        self._modules, self._steps = modules, steps

    def train(self, loop: Any) -> None:
        work = self._modules.systems.WORKS["paced"]
        environment = self._modules.inverted_loop.InvertedEnvironment(loop, work.observation, work.action)
        observation, _ = environment.reset()
        for _ in range(self._steps):
            observation, reward, terminated, truncated, _ = environment.step(int(observation[0]))
            self.seen.append((reward, terminated, truncated))
            if terminated or truncated:
                observation, _ = environment.reset()


def row(value: int) -> Any:
    return np.full(8, value, np.float32)


def test_the_library_sees_the_episodes_of_the_system(modules: Any) -> None:
    peer = FakePeer(modules, 100)
    loop = modules.inverted_loop.InvertedLoop(peer.train)
    for episode in range(2):
        assert [loop.act(row(value)) for value in (1, 2)] == [1, 2]
        loop.reward(0.5)
        loop.reward(1.0)
        loop.end(row(0), truncated=episode == 1)
    loop.close()
    assert peer.seen == [(0.0, False, False), (1.5, True, False), (0.0, False, False), (1.5, False, True)]


def test_a_system_hears_that_the_library_has_ended(modules: Any) -> None:
    loop = modules.inverted_loop.InvertedLoop(FakePeer(modules, 1).train)
    assert loop.act(row(3)) == 3
    with pytest.raises(modules.inverted_loop.LoopEnded, match="trained as long as it was asked to"):
        loop.act(row(3))
    with pytest.raises(modules.inverted_loop.LoopEnded):
        loop.act(row(3))


def test_a_fake_peer_fills_all_columns_of_a_work(modules: Any) -> None:
    peer = FakePeer(modules, 10_000)
    loop = modules.inverted_loop.InvertedLoop(peer.train)
    work, limits = modules.systems.WORKS["lunar_lander"], modules.measurement.Limits(300)
    measured = modules.asking_system.ask(work, loop, limits, seed=1)
    loop.close()
    values = measured.values()
    assert len(measured.act) == 300
    assert all(np.isfinite(value) for value in values.values())
    assert values["return"] == pytest.approx(np.mean(measured.returns[-20:]))
    table = modules.bench_peers.table({"fake": values}, "return")
    assert "| act, median, µs | " in table
    assert "| updates | – |" in table


def train_in_own_loop(modules: Any, work: str, limits: Any) -> tuple[Any, Any, Any]:
    """A library that owns the loop takes the last choice until the system ends it."""
    made = modules.systems.WORKS[work]
    system = modules.padded_rows.PaddedSystem(made.make()) if made.has_rows else made.make()
    measured = modules.measurement.Measurement(limits)
    environment = modules.own_loop.OwnLoop(system, measured, seed=1)
    environment.reset(seed=99)
    with contextlib.suppress(modules.inverted_loop.LoopEnded):
        while True:
            _, _, terminated, truncated, _ = environment.step(made.action.n - 1)
            if terminated or truncated:
                environment.reset()
    return measured, system, made


@pytest.mark.parametrize("work", ["lunar_lander", "batch_scheduling"])
def test_a_system_is_the_same_in_a_loop_of_either_side(modules: Any, work: str) -> None:
    limits = modules.measurement.Limits(300)
    owned, system, made = train_in_own_loop(modules, work, limits)
    decider = AlwaysLast() if made.has_rows else AlwaysTheSame(made.action.n - 1)
    rows = modules.padded_rows.PaddedRows(decider) if made.has_rows else None
    asked = modules.asking_system.ask(made, rows or decider, limits, seed=1)
    assert (len(owned.act), owned.returns) == (300, asked.returns)
    assert rows is None or system.absent == rows.absent > 0


def test_a_run_ends_when_its_seconds_are_over(modules: Any) -> None:
    measured, _, _ = train_in_own_loop(modules, "paced", modules.measurement.Limits(10**9, 0.05))
    assert 0 < len(measured.act) < 100


class AlwaysTheSame:
    """One action."""

    def __init__(self, action: int) -> None:
        self._action = action

    def act(self, observation: Any) -> int:
        return self._action

    def reward(self, value: float) -> None:
        assert np.isfinite(value)

    def end(self, observation: Any, *, truncated: bool) -> None:
        assert np.isfinite(observation).all()


class AlwaysLast:
    """Chooses the last of all candidates, which is there only if all are."""

    def __init__(self) -> None:
        self.sizes: set[int] = set()

    def act(self, observation: Any) -> int:
        self.sizes.add(len(observation))
        return 127

    def reward(self, value: float) -> None:
        assert np.isfinite(value)

    def end(self, observation: Any, *, truncated: bool) -> None:
        self.sizes.add(len(observation))


def test_libraries_without_candidates_see_the_jobs_as_one_vector(modules: Any) -> None:
    decider = AlwaysLast()
    rows = modules.padded_rows.PaddedRows(decider)
    work = modules.systems.WORKS["batch_scheduling"]
    measured = modules.asking_system.ask(work, rows, modules.measurement.Limits(300), seed=1)
    assert decider.sizes == set(work.observation.shape) == {8 + 128 * 8}
    assert 0 < rows.absent <= 300
    assert len(measured.returns) == 1


def test_a_vector_has_context_rows_and_zeros(modules: Any) -> None:
    systems = modules.systems
    observation = {"context": np.full(8, 2.0), "candidates": np.full((3, 8), 5.0)}
    flat = systems.padded(observation)
    assert (flat[:8] == 2.0).all()
    assert (flat[8:32] == 5.0).all()
    assert not flat[32:].any()


def test_the_stand_in_for_old_gym_resets_by_itself(modules: Any) -> None:
    cleanrl, steps = modules.peer_cleanrl, []

    def train(loop: Any) -> None:
        work = modules.systems.WORKS["paced"]
        vector = cleanrl._OldVector(modules.inverted_loop.InvertedEnvironment(loop, work.observation, work.action), int)
        observation = vector.reset()
        while True:
            observation, reward, over, _ = vector.step(np.array([int(observation[0, 0])]))
            steps.append((reward.tolist(), over.tolist()))

    loop = modules.inverted_loop.InvertedLoop(train)
    for _ in range(2):
        assert loop.act(row(3)) == 3
        loop.reward(1.0)
        loop.end(row(0), truncated=True)
    loop.close()
    assert steps == [([1.0], [True])]


def test_a_killed_trainer_that_stops_the_system_is_said(modules: Any) -> None:
    runs = {
        "rl4sys": [{"after_kill": {"decisions": 3_000, "longest_stall_ms": 4.0}}],
        "rllib": [{"after_kill": {"problem": "ConnectionError: gone"}}],
    }
    said = modules.bench_peers.kills(runs)
    assert "took all 3,000 later decisions" in said[0]
    assert "the system got ConnectionError: gone" in said[1]


def test_columns_in_which_rl4sys_is_not_first_are_said_with_the_numbers(modules: Any) -> None:
    work = modules.systems.WORKS["batch_scheduling"]
    found = {
        "bare": {"decisions_per_second": 900.0, "act_p50_us": 1.0},
        "rl4sys": {
            "decisions_per_second": 500.0,
            "act_p50_us": 9.0,
            "updates": 3,
            "return": 1.5,
            "bytes_per_update": 8.0,
        },
        "sb3": {
            "decisions_per_second": 40.0,
            "act_p50_us": 470.0,
            "updates": 9,
            "return": 1.2,
            "bytes_per_update": None,
        },
    }
    said = modules.bench_peers.places(found, work)
    assert said == (
        "RL4Sys is first, or equal to the first, in 2 of 4 columns; not in: updates (3, sb3 9); "
        "slowdown relative to SJF, the last 20 sequences (1.50, sb3 1.20)."
    )


def test_time_that_a_run_does_not_need_is_left_for_the_others(modules: Any) -> None:
    now = [0.0]
    budget = modules.bench_peers.Budget(4.0, 4, lambda: now[0])
    assert budget.next() == 60.0 - 15.0
    now[0] = 15.0
    assert budget.next() == 75.0 - 15.0
    now[0] = 239.0
    assert budget.next() == 3.0

"""The adapter of the side-by-side benchmark: a system that asks a library which wants to own the loop."""

from __future__ import annotations

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
        systems = self._modules.systems
        environment = self._modules.inverted_loop.InvertedEnvironment(loop, systems.OBSERVATION, systems.ACTION)
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
    measured = modules.systems.lunar_lander(loop, 300, seed=1)
    loop.close()
    values = measured.values()
    assert len(measured.act) == 300
    assert all(np.isfinite(value) for value in values.values())
    assert values["return"] == pytest.approx(np.mean(measured.returns[-20:]))
    table = modules.bench_peers.table({"fake": values})
    assert "| act, median, µs | " in table
    assert "| updates | – |" in table

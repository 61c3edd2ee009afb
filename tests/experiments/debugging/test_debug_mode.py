"""The debug mode: what it writes, and that it changes nothing."""

from __future__ import annotations

import gzip
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from experiments.runs import DQN, OFF_POLICY, PPO, small
from rl4sys.experiments import Run
from rl4sys.experiments.debugging.debug_mode import Histograms
from rl4sys.experiments.debugging.gradients import GradientChecks, Gradients
from rl4sys.experiments.monitoring.monitor import Monitor

PENDULUM = {"environment__name": "Pendulum-v1"}
KINDS: dict[str, tuple[Any, dict[str, Any], set[str], set[str]]] = {
    "ppo": (PPO, {}, {"actor_and_critic"}, {"actor_and_critic"}),
    "ppo apart": (PPO, {"algorithm__critic_epochs": 2}, {"actor", "critic"}, {"actor", "critic"}),
    "dqn": (DQN, {}, {"q", "q.target"}, {"q"}),
    "sac": (
        OFF_POLICY,
        {"algorithm__name": "sac", **PENDULUM},
        {"actor", "critics", "critics.target", "log_alpha"},
        {"actor", "critics", "log_alpha"},
    ),
    "td3": (
        OFF_POLICY,
        {"algorithm__name": "td3", **PENDULUM},
        {"actor", "actor.target", "critics", "critics.target"},
        {"actor", "critics"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_networks_and_optimizers_have_names(tmp_path: Path, kind: str) -> None:
    parts, changes, networks, optimizers = KINDS[kind]
    with Run.create(small(parts, tmp_path, **changes)) as run:
        state = run.learner.algorithm.train_state
        assert set(dict(state.parameters())) == networks
        assert set(state.optimizers) == optimizers


@pytest.mark.parametrize("kind", ["ppo", "sac"])
def test_a_run_in_debug_mode_learns_the_same_to_the_bit(tmp_path: Path, kind: str) -> None:
    parts, changes, *_ = KINDS[kind]
    config = small(parts, tmp_path, **changes)
    run = Run.create(config)
    run.debug()
    assert run.train().fingerprint == Run.create(config).train().fingerprint


def test_gradients_weights_and_a_profile_are_written(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.debug()
    run.train()
    looks = [json.loads(line) for line in (run.directory.path / "debug/gradients.jsonl").read_text().splitlines()]
    assert [look["step"] for look in looks] == list(range(32, 257, 32))
    assert looks[0]["norms"]["actor_and_critic"] > 0
    assert looks[0]["tensors"]["actor_and_critic/critic.value.weight"] > 0
    table = (run.directory.path / "debug/profile.txt").read_text().splitlines()
    assert table[0].startswith("3 updates")
    assert len(table) == 12
    assert "aten::addmm" in "".join(table)
    trace = json.loads(gzip.decompress((run.directory.path / "debug/profile.json.gz").read_bytes()))
    assert len(trace["traceEvents"]) > 100


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_disk_that_takes_no_gradients_ends_no_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = Run.create(small(PPO, tmp_path))
    (run.directory.path / "debug").mkdir()
    (run.directory.path / "debug/gradients.jsonl").symlink_to("/dev/full")
    run.debug()
    assert run.train().finished
    assert caplog.text.count("Gradients and weights are not noted any more") == 1


def test_tensorboard_can_read_the_histograms_of_weights(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = Run.create(small(PPO, tmp_path))
    run.debug()
    run.train()
    found = accumulator.EventAccumulator(str(run.directory.path / "tensorboard/debug"), {"histograms": 0})
    found.Reload()
    last = found.Histograms("weights/actor_and_critic/actor.0.weight")[-1]
    weights = dict(run.learner.algorithm.train_state.parameters())["actor_and_critic"].views["actor.0.weight"].detach()
    assert (last.step, last.histogram_value.num) == (256, weights.numel())
    assert last.histogram_value.max == pytest.approx(float(weights.max()))
    assert len(found.Scalars("gradient_norm/actor_and_critic")) == 8


@pytest.mark.parametrize("value", [0.0, 3.0, -1e38, float("nan")])
def test_equal_weights_have_a_histogram_however_large_they_are(tmp_path: Path, value: float) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    histograms = Histograms(tmp_path)
    histograms.write(1, {}, {"weights": np.full(5, value, np.float32)})
    histograms.close()
    found = accumulator.EventAccumulator(str(tmp_path), {"histograms": 0})
    found.Reload()
    (only,) = found.Histograms("weights")
    assert only.histogram_value.num == (0 if np.isnan(value) else 5)
    assert sum(only.histogram_value.bucket) == only.histogram_value.num


def test_huge_and_zero_gradients_get_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    checks = GradientChecks()
    for step in range(5):
        checks.check(Gradients({"policy": 1e6}, {"policy/a": 0.0, "policy/b": 1.0}), step)
    assert len(caplog.messages) == 2
    assert "the gradient of policy has norm 1e+06" in caplog.messages[0]
    assert "policy/a got a gradient of zeros" in caplog.messages[1]


def test_a_run_out_of_memory_splits_batches_and_saves_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config = small(PPO, tmp_path)
    with Run.create(config) as run:
        run.step()
        algorithm = run.learner.algorithm
        value = algorithm.critic  # type: ignore[attr-defined]

        def limited(observation: dict[str, torch.Tensor]) -> torch.Tensor:
            if torch.is_grad_enabled() and len(next(iter(observation.values()))) > 8:
                raise torch.OutOfMemoryError("out of memory. Tried to allocate 1 GiB.")
            return value(observation)

        limited.optimizer = value.optimizer  # type: ignore[attr-defined]
        monkeypatch.setattr(algorithm, "critic", limited)
        with caplog.at_level(logging.WARNING):
            run.step()
        assert algorithm.train_state.splitter.parts == 2
        assert "batches of 16 rows are split into 2 parts" in caplog.text
        run.save()
        watch = run._parts.monitor
        assert isinstance(watch, Monitor)
        assert watch.metrics() == {"train/batch_parts": 2.0}
    with Run.resume(run.directory) as resumed:
        assert resumed.learner.algorithm.train_state.splitter.parts == 2

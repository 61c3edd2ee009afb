"""Runs that begin with the weights of another run or of a policy file."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from rl4sys.checkpoints import NoCheckpoint
from rl4sys.experience import Array
from rl4sys.experiments import Run
from rl4sys.experiments.starting_point import StartingPoint
from rl4sys.learning import TransferMismatch, weights_of

from .runs import OFF_POLICY, PPO, small

SAC = {"algorithm__name": "sac", "environment__name": "Pendulum-v1"}


def tensors(run: Run) -> dict[str, Array]:
    return weights_of(run.learner.algorithm.train_state)[0]


@pytest.fixture
def trained(tmp_path: Path) -> Run:
    run = Run.create(small(PPO, tmp_path, environment__normalize_obs=True))
    run.train()
    return run


def begun(run: Run, tmp_path: Path, start: StartingPoint, **overrides: object) -> Run:
    settings = {"environment__normalize_obs": True, "experiment__seed": 1, **overrides}
    with Run.create(small(PPO, tmp_path, **settings), start=start) as new:
        return new


def test_a_run_begins_with_all_weights_and_says_so(tmp_path: Path, trained: Run) -> None:
    new = begun(trained, tmp_path, StartingPoint(str(trained.directory.path), best=False))
    for name in ("actor.0.weight", "critic.value.bias"):
        np.testing.assert_array_equal(tensors(new)[name], tensors(trained)[name])
    assert np.all(tensors(new)["observation.mean"] == 0.0), "normalisers are taken over on request only"
    parent = new.directory.read_manifest()["parent"]
    assert (parent["source"], parent["step"], parent["left"]) == (str(trained.directory.path), 256, [])


def test_named_parts_are_taken_over_and_the_rest_is_new(tmp_path: Path, trained: Run) -> None:
    new = begun(trained, tmp_path, StartingPoint(str(trained.directory.path), ("actor.0",), best=False))
    np.testing.assert_array_equal(tensors(new)["actor.0.weight"], tensors(trained)["actor.0.weight"])
    assert not np.array_equal(tensors(new)["critic.0.weight"], tensors(trained)["critic.0.weight"])


@pytest.mark.parametrize("source", ["", "policies/latest.rl4sys"])
def test_normalisers_come_from_a_run_or_a_policy(tmp_path: Path, trained: Run, source: str) -> None:
    start = StartingPoint(str(trained.directory.path / source), ("actor",), normalisers=True, best=False)
    new = begun(trained, tmp_path, start)
    for name in ("observation.mean", "observation.scale"):
        np.testing.assert_allclose(tensors(new)[name], tensors(trained)[name], rtol=1e-4)


def test_targets_are_taken_over_with_their_networks(tmp_path: Path) -> None:
    first = Run.create(small(OFF_POLICY, tmp_path, **SAC))
    first.train()
    start = StartingPoint(str(first.directory.path), ("critic",), best=False)
    with Run.create(small(OFF_POLICY, tmp_path, **SAC), start=start) as new:
        ours, theirs = (weights_of(run.learner.algorithm.train_state)[1] for run in (new, first))
    key = ("critics.target", "critic.0.weight")
    np.testing.assert_array_equal(ours[key], theirs[key])


@pytest.mark.parametrize(
    ("parts", "normalisers", "overrides", "message"),
    [
        (("actr",), False, {}, "'actr' is no part of the weights of this run; there are actor, critic"),
        ((), False, {"network__actor__hidden_dims": [9]}, r"actor.0.weight \(4, 8\) there, \(4, 9\) here.*critic.0"),
        ((), True, {"environment__normalize_obs": False}, "set environment.normalize_obs=true"),
    ],
)
def test_what_does_not_fit_is_refused_without_a_run(
    tmp_path: Path, trained: Run, parts: tuple[str, ...], normalisers: bool, overrides: dict[str, object], message: str
) -> None:
    with pytest.raises(TransferMismatch, match=message):
        begun(trained, tmp_path, StartingPoint(str(trained.directory.path), parts, normalisers), **overrides)
    assert list(tmp_path.glob("ppo-*")) == [trained.directory.path]


def test_a_run_whose_first_weights_are_lost_does_not_start_over(tmp_path: Path, trained: Run) -> None:
    new = begun(trained, tmp_path, StartingPoint(str(trained.directory.path)))
    shutil.rmtree(new.directory.checkpoints)
    with pytest.raises(NoCheckpoint):
        Run.resume(new.directory)

"""A module that only torch can run: it trains, acts, resumes exactly, and says why it does not travel."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import rl4sys
from own_networks import Spectrum
from rl4sys.config import ConfigError
from rl4sys.experiments import Run
from rl4sys.experiments.policies.export import export_policy
from rl4sys.experiments.policies.trained_policy import find_policy
from rl4sys.policy import LOCAL_COMPILERS, NumpyPolicy, UnknownOp

from .runs import OFF_POLICY, PPO, small

SAC = {
    "algorithm": {**OFF_POLICY["algorithm"], "name": "sac"},
    "environment": {"name": "Pendulum-v1", "num_envs": 2},
    "buffer": OFF_POLICY["buffer"],
}
OWN = {"type": "module", "module": "own_networks:Spectrum"}


@pytest.mark.parametrize("algorithm", [PPO, SAC], ids=["ppo", "sac"])
def test_an_interrupted_run_ends_in_the_same_bits(algorithm: dict[str, object], tmp_path: Path) -> None:
    settings = {"network": {"actor": OWN, "critic": OWN}}
    whole = Run.create(small(algorithm, tmp_path / "whole", **settings))
    expected = whole.train().fingerprint
    half = Run.create(small(algorithm, tmp_path / "half", **settings))
    half.train(stop=lambda: half.steps >= 128)
    resumed = Run.resume(half.directory)
    assert resumed.inexact == ()
    assert resumed.train().fingerprint == expected


def test_the_policy_acts_here_and_is_refused_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        run = Run.create(small(PPO, tmp_path, network={"actor": OWN}))
    run.train()
    assert "cannot be exported or served, because own_networks:Spectrum runs with torch only" in caplog.text
    assert rl4sys.load(run.directory.path).act([0.1, 0.2, 0.3, 0.4]) in (0, 1)
    trained = find_policy(str(run.directory.path))
    with pytest.raises(ConfigError, match=r"cannot be exported: own_networks:Spectrum .* it uses the parameter"):
        export_policy(trained, "rl4sys", tmp_path / "policy.rl4sys")
    monkeypatch.delitem(LOCAL_COMPILERS, "torch_module")
    with pytest.raises(UnknownOp, match="acts only in processes that train: own_networks:Spectrum"):
        NumpyPolicy(trained.policy.exploit)


def test_a_module_is_given_by_its_class_from_python(tmp_path: Path) -> None:
    class Inner(Spectrum):
        pass

    config = small(PPO, tmp_path, network={"actor": {"type": "module", "module": Spectrum}})
    assert config.network.actor.model_dump()["module"] == f"{Spectrum.__module__}:Spectrum"
    Run.create(config).close()
    with pytest.raises(ConfigError, match="define Inner at the top of its module"):
        small(PPO, tmp_path, network={"actor": {"type": "module", "module": Inner}})


def test_processes_without_torch_are_refused_before_training(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"training\.pipelined: the policy acts in one process, because"):
        Run.create(small(PPO, tmp_path, network={"actor": OWN}, training__pipelined=True))
    assert list(tmp_path.iterdir()) == []

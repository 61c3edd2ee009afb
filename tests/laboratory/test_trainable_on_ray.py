"""`rl4sys.RunTrainable` in Ray Tune: its schedulers stop, save and restore runs, which learn what they would alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rl4sys
from experiments.runs import PPO, values
from rl4sys.experiments import Run, load_experiment

TESTS = Path(__file__).parents[1]
PACKAGES = Path(os.environ.get("RL4SYS_CLUSTER_ENVIRONMENT", TESTS.parent / ".venv-cluster")) / "tune"
needs_tune = pytest.mark.skipif(not PACKAGES.exists(), reason="needs Ray Tune: make test-cluster")


def inside(scenario: str, place: Path) -> Any:
    """What a scenario prints, in a process that has the packages of Ray Tune."""
    environment = os.environ | {"PYTHONPATH": f"{PACKAGES}:{TESTS}:{TESTS.parent / 'src'}"}
    command = [sys.executable, "-m", "laboratory.tune_inside", scenario, str(place)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=place, check=False)
    assert done.returncode == 0, done.stderr[-4_000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.cluster
@needs_tune
def test_a_trial_that_is_saved_and_restored_learns_what_a_run_learns(tmp_path: Path) -> None:
    whole = Run.create(load_experiment(values(PPO, tmp_path / "whole"))).train()
    found = inside("save_and_restore", tmp_path)
    assert found["fingerprint"] == whole.fingerprint
    assert found["inexact"] == []
    assert [result["timesteps_total"] for result in found["results"]] == [128, 256]
    assert found["results"][-1]["evaluation/return"] == whole.evaluation


@pytest.mark.cluster
@needs_tune
def test_another_trials_checkpoint_continues_with_own_settings(tmp_path: Path) -> None:
    found = inside("exploit", tmp_path)
    assert found["inexact"] == ["step 128: algorithm.lr was 0.001, now 0.004"]
    assert found["lr"] == 0.004
    assert found["changed"] != found["unchanged"]


@pytest.mark.cluster
@needs_tune
def test_an_order_brings_its_plug_ins(tmp_path: Path) -> None:
    assert inside("plug_in", tmp_path) == 128


@pytest.mark.cluster
@needs_tune
def test_asha_stops_trials_early(tmp_path: Path) -> None:
    steps = inside("asha", tmp_path)
    assert len(steps) == 4
    assert min(steps) == 128
    assert max(steps) == 256


@pytest.mark.cluster
@needs_tune
def test_population_based_training_moves_checkpoints_between_trials(tmp_path: Path) -> None:
    found = inside("population", tmp_path)
    assert found["steps"] == [512] * 2
    assert any("algorithm.lr was" in note for notes in found["inexact"] for note in notes)


@pytest.mark.skipif("pandas" in sys.modules, reason="Ray Tune is installed")
def test_without_ray_tune_one_sentence_says_what_to_install() -> None:
    pytest.importorskip("ray")
    with pytest.raises(ImportError, match=r"needs Ray Tune. Install it with: pip install 'rl4sys\[tune-ray\]'"):
        _ = rl4sys.RunTrainable

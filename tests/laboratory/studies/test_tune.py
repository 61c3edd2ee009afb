"""Tuning with real trials in real processes: pruned, killed, stopped and resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli.commands import finish, start, wait_until, write_config
from experiments.runs import PPO, values
from rl4sys.experiments import Result, load_experiment
from rl4sys.laboratory.trials.trial import run_in


def write_study(place: Path, **changes: Any) -> None:
    write_config(place / "base.yaml", values(PPO, Path("runs")))
    study = {
        "base_config": "base.yaml",
        "space": {"algorithm.lr": {"log_uniform": [1e-4, 1e-2]}, "network.actor.hidden_dims": [[8], [16]]},
        "trials": 4,
        "parallel_jobs": 2,
        **changes,
    }
    (place / "study.yaml").write_text(yaml.safe_dump(study))


@pytest.mark.slow
def test_the_best_config_can_be_trained(tmp_path: Path) -> None:
    write_study(tmp_path, seeds=[0, 1], pruner={"name": "none"})
    code, out, err = finish(start("tune", "study.yaml", "--json", cwd=tmp_path), 300)
    assert code == 0, err
    found = json.loads(out)
    assert [trial["status"] for trial in found["trials"]] == ["finished"] * 4
    assert found["best"]["score"] == max(trial["score"] for trial in found["trials"])
    assert sum(found["importances"].values()) == pytest.approx(1.0)
    place = tmp_path / "runs/study"
    scores = []
    for seed in (0, 1):
        run = run_in(place / f"trial-{found['best']['number']:04d}" / f"seed{seed}")
        assert run is not None
        result = Result.read(run.result)
        assert result is not None
        assert result.evaluation is not None
        scores.append(result.evaluation)
    assert found["best"]["score"] == pytest.approx(sum(scores) / 2)
    best = load_experiment(place / "best.yaml")
    dumped = best.model_dump()
    assert dumped["algorithm"]["lr"] == found["best"]["values"]["algorithm.lr"]
    assert list(dumped["network"]["actor"]["hidden_dims"]) == found["best"]["values"]["network.actor.hidden_dims"]
    assert (best.name, best.experiment.directory) == ("study-best", "runs")
    for picture in ("history.png", "importance.png"):
        assert (place / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_a_killed_study_resumes_the_trials_it_had_started(tmp_path: Path) -> None:
    write_study(tmp_path, overrides={"training.total_timesteps": 1_500}, pruner={"name": "none"}, trials=3)
    process = start("tune", "study.yaml", cwd=tmp_path)
    metrics = "runs/study/*/*/*/metrics.jsonl"
    wait_until(lambda: len([path for path in tmp_path.glob(metrics) if path.stat().st_size > 2_000]) >= 2, process, 120)
    process.kill()
    finish(process)
    code, out, err = finish(start("tune", "study.yaml", "--json", cwd=tmp_path), 300)
    assert code == 0, err
    found = json.loads(out)
    assert [trial["status"] for trial in found["trials"]] == ["finished"] * 3
    assert len(list(tmp_path.glob("runs/study/*/*/*/manifest.json"))) == 3
    code, out, err = finish(start("tune", "study.yaml", "--json", "--trials", "4", cwd=tmp_path), 300)
    assert (code, len(json.loads(out)["trials"])) == (0, 4), err
    assert err.count("started") == 1


@pytest.mark.slow
@pytest.mark.parametrize("pruner", [{"name": "median", "startup_trials": 1}, {"name": "asha"}], ids=["median", "asha"])
def test_bad_trials_are_pruned_and_impossible_ones_have_a_cause(pruner: dict[str, Any], tmp_path: Path) -> None:
    # No policy falls below Acrobot's −500 on CartPole.
    write_study(
        tmp_path,
        space={"environment.name": ["CartPole-v1", "Acrobot-v1", "NoSuch-v0"]},
        overrides={"training.total_timesteps": 256, "training.eval_frequency": 64, "training.num_eval_episodes": 1},
        pruner=pruner,
        trials=4,
        parallel_jobs=1,
    )
    code, out, err = finish(start("tune", "study.yaml", "--json", cwd=tmp_path), 300)
    assert code == 0, err
    trials = json.loads(out)["trials"]
    names = [trial["values"]["environment.name"] for trial in trials]
    assert set(names) == {"CartPole-v1", "Acrobot-v1", "NoSuch-v0"}
    for name, trial in zip(names, trials, strict=True):
        assert (trial["status"] == "failed") == (trial["cause"] is not None) == (name == "NoSuch-v0")
    later = [
        trial
        for trial, name in list(zip(trials, names, strict=True))[names.index("CartPole-v1") :]
        if name == "Acrobot-v1"
    ]
    assert [(trial["status"], trial["steps"]) for trial in later] == [("given up", 64)] * len(later)
    assert later


@pytest.mark.slow
def test_a_study_whose_trials_all_fail_ends_early(tmp_path: Path) -> None:
    write_study(tmp_path, overrides={"environment.name": "NoSuch-v0"}, trials=30)
    code, _, err = finish(start("tune", "study.yaml", cwd=tmp_path), 180)
    assert code == 2
    assert "All trials of runs/study failed, the last one with: " in err
    assert "NoSuch-v0" in err
    assert 3 <= len(list(tmp_path.glob("runs/study/trial-*"))) <= 4

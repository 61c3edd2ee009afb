from __future__ import annotations

import errno
import json
import os
import sys
from pathlib import Path

import pytest
import yaml

from rl4sys.experiments import RunDirectory, load_experiment

from .commands import Here

QUICK = ("training.total_timesteps=64", "training.num_eval_episodes=1", "threads=1", "logging.tensorboard=false")


def only_run() -> RunDirectory:
    (path,) = (path for path in Path("runs").iterdir() if path.is_dir())
    return RunDirectory(path)


def test_a_config_becomes_a_run_that_can_be_evaluated_and_plotted(rl4sys: Here, config: Path) -> None:
    code, out, err = rl4sys("train", str(config), "--name", "mein [Lauf]", "seed=4", "logging.terminal=true")
    assert (code, out.splitlines()[1].split()[:2]) == (0, ["steps", "256"])
    assert "mein [Lauf]: step 256/256" in err
    run = only_run().path
    assert run.name.startswith("mein [Lauf]-seed4-")
    assert (run / "learning_curve.png").is_file()
    assert str(run) in out
    assert rl4sys("plot", "mein", "-o", "all.png").out == "wrote all.png\n"
    facts = json.loads(rl4sys("evaluate", "mein", "--episodes", "3", "--json").out)
    assert (facts["run"], len(facts["returns"]), facts["step"] <= 256) == (str(run), 3, True)
    assert "mean return" in rl4sys("evaluate", "mein", "--latest", "--episodes", "1").out


def test_tuned_settings_are_used_for_a_known_environment(rl4sys: Here) -> None:
    code, _, err = rl4sys("train", "--algorithm", "PPO", "--env", "CartPole-v1", *QUICK)
    assert code == 0
    assert "settings  ppo_CartPole-v1.yaml, tuned for CartPole-v1" in err
    assert load_experiment(only_run().config).buffer.size == 256


def test_defaults_are_used_for_another_environment(rl4sys: Here) -> None:
    code, out, err = rl4sys("train", "--algorithm", "ppo", "--env", "MountainCarContinuous-v0", "--dry-run")
    assert code == 0
    assert "the defaults of ppo: none are tuned for MountainCarContinuous-v0" in err
    assert yaml.safe_load(out)["environment"]["name"] == "MountainCarContinuous-v0"


def test_a_dry_run_shows_what_would_be_run_and_runs_nothing(rl4sys: Here, config: Path) -> None:
    code, out, err = rl4sys("train", str(config), "--seed", "1,2", "--dry-run", "algorithm.lr=1e-2")
    documents = list(yaml.safe_load_all(out))
    assert (code, [document["experiment"]["seed"] for document in documents]) == (0, [1, 2])
    assert documents[0]["algorithm"]["lr"] == 0.01
    assert "2 run(s) on this machine; nothing was started." in err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("device=cuda:63", "Use device=auto (or --allow-fallback)"),
        ("logging.wandb.enabled=true", "pip install 'rl4sys[wandb]', or train without this logger"),
    ],
)
def test_a_missing_device_or_logger_is_an_error_or_with_a_fallback_a_warning(
    rl4sys: Here, config: Path, override: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    code, out, err = rl4sys("train", str(config), override)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message.lower() in err.lower()
    assert not Path("runs").exists()
    code, _, err = rl4sys("train", str(config), override, "--allow-fallback")
    assert (code, err.count("warning: ")) == (0, 1)


def test_a_full_disk_is_a_one_line_error_and_the_run_resumes_once_there_is_space(
    rl4sys: Here, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter(range(30))

    def full(descriptor: int) -> None:
        if next(left, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, out, err = rl4sys("train", str(config))
    run = only_run()
    assert (code, out, err.splitlines()[-1].count(f"continue with: rl4sys resume {run.path}")) == (2, "", 1)
    assert "Traceback" not in err
    assert rl4sys("resume", str(run.path)).code == 0

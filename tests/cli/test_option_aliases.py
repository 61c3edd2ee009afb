"""Options of other libraries become arguments of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.cli.option_aliases import rewritten

from .commands import Here

KNOWN = ("--name", "--env", "--seed", "--algorithm", "--cpus", "--dry-run")


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        ("train --config my.yaml --seed 3", "train my.yaml --seed 3"),
        ("train --resume runs/a --total_timesteps 9", "resume runs/a training.total_timesteps=9"),
        (
            "train my.yaml --exp-name first --checkpoint-frequency=5",
            "train my.yaml --name first training.checkpoint_frequency=5",
        ),
        ("train --universe gym --domain HalfCheetah --task v5", "train --env gym/HalfCheetah/v5"),
        ("train --universe dm_control --domain cheetah --task run", "train --env dm_control/cheetah/run"),
        ("train my.yaml --algorithm.lr 1e-3 --device cpu", "train my.yaml algorithm.lr=1e-3 device=cpu"),
        ("train my.yaml --cpus 2 --dry-run --sed 3", "train my.yaml --cpus 2 --dry-run --sed 3"),
        ("sweep --config my.yaml", "sweep my.yaml"),
    ],
)
def test_options_of_other_libraries_are_rewritten(given: str, ours: str) -> None:
    assert " ".join(rewritten(given.split(), KNOWN)) == ours


def test_a_run_trains_and_resumes_with_the_options_of_others(rl4sys: Here, config: Path) -> None:
    code, out, err = rl4sys("train", "--config", str(config), "--exp-name", "other", "--total-timesteps", "64")
    assert (code, "runs/other-seed0-" in out) == (0, True), err
    code, out, _ = rl4sys("train", "--resume", "other", "--total_timesteps", "96")
    assert (code, "steps             96" in out) == (0, True)


def test_an_unknown_option_is_answered_with_the_exact_key(rl4sys: Here, config: Path) -> None:
    code, _, err = rl4sys("train", str(config), "--learning-rate", "1e-3")
    assert (code, err) == (2, "error: The override learning_rate: unknown key; did you mean 'algorithm.lr'?\n")
    code, _, err = rl4sys("train", str(config), "--sead", "3")
    assert (code, "--seed" in err) == (2, True)


@pytest.mark.parametrize("command", [("train", "small.yaml"), ("sweep", "sweep.yaml")])
def test_a_missing_gpu_is_refused_alike_unless_a_fallback_is_allowed(
    rl4sys: Here, config: Path, command: tuple[str, ...]
) -> None:
    Path("sweep.yaml").write_text("{base_config: small.yaml, sweep: {algorithm.lr: [1e-3]}, overrides: {device: cuda}}")
    arguments = (*command, "--dry-run", *(["device=cuda"] if command[0] == "train" else []))
    code, _, err = rl4sys(*arguments)
    assert (code, "device: 'cuda' was requested, but torch finds no CUDA GPU here" in err) == (2, True), err
    assert rl4sys(*arguments, "--allow-fallback").code == 0

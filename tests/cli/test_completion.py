"""What a shell offers for a word that is not finished."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer._completion_classes import BashComplete

from laboratory.example_runs import written
from rl4sys.cli.commands import build
from rl4sys.cli.completion import ALGORITHMS
from rl4sys.engine import ALGORITHMS as REGISTERED
from rl4sys.laboratory.comparison.export import ExportFormat


def completed(line: str) -> list[str]:
    """What is offered for the last word of a command line."""
    *words, incomplete = line.split(" ")
    command = typer.main.get_command(build([words[0]]))
    # A shell always has all commands, so that the first word names one.
    arguments = words if words[0] in getattr(command, "commands", {}) else words[1:]
    found = BashComplete(command, {}, "rl4sys", "_RL4SYS_COMPLETE").get_completions(arguments, incomplete)
    return [item.value for item in found]


@pytest.fixture(autouse=True)
def _two_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "runs" / "ppo-CartPole-v1-seed1", [1.0])
    written(tmp_path / "runs" / "sweep" / "dqn-CartPole-v1-seed1", [1.0])


@pytest.mark.parametrize("command", ["show", "plot", "export", "evaluate", "resume", "tag", "train --from"])
def test_the_name_of_a_run_is_completed(command: str) -> None:
    assert completed(f"{command} ppo-C") == ["ppo-CartPole-v1-seed1"]
    assert completed(f"{command} la") == ["last"]
    assert completed(f"{command} sweep/") == ["sweep/dqn-CartPole-v1-seed1"]


def test_runs_are_searched_for_where_the_command_says(tmp_path: Path) -> None:
    written(tmp_path / "elsewhere" / "sac-Pendulum-v1-seed1", [1.0])
    assert completed("show --runs elsewhere sac") == ["sac-Pendulum-v1-seed1"]
    assert completed("show --runs nowhere sac") == []


def test_completing_a_second_run_prints_nothing_about_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    written(Path("runs/ppo-CartPole-v1-seed2"), [1.0])
    assert completed("plot ppo- sweep") == ["sweep/dqn-CartPole-v1-seed1"]
    assert capsys.readouterr().err == ""


def test_algorithms_are_completed() -> None:
    assert completed("train --algorithm ppo") == ["ppo", "ppo_rnd"]


def test_every_algorithm_that_is_registered_can_be_completed() -> None:
    own = {name for name in REGISTERED if REGISTERED.type(name).__module__.startswith("rl4sys.")}
    assert own == set(ALGORITHMS)


def test_formats_of_exports_are_completed() -> None:
    assert completed("export last --format ") == list(ExportFormat)


def test_shipped_configs_are_completed_and_those_in_the_current_directory() -> None:
    Path("ppo_cart_of_mine.yaml").touch()
    assert completed("train ppo_cart") == [
        *("ppo_cart_of_mine.yaml", "ppo_cartpole.yaml", "ppo_cartpole_pixels.yaml", "ppo_cartpole_velocity_free.yaml")
    ]
    assert completed("config show ppo_recall_g") == ["ppo_recall_gru.yaml"]
    assert completed("sweep random") == ["random_dqn.yaml"]
    assert completed("tune qr") == ["qr_dqn.yaml"]
    assert completed("tune ppo.yaml --base ppo_recall_g") == ["ppo_recall_gru.yaml"]


@pytest.mark.parametrize(
    ("line", "offered"),
    [("rl4sys export ppo --format ti", ["tidy"]), ("rl4sys show ppo", ["ppo-CartPole-v1-seed1"])],
)
def test_a_shell_needs_no_torch_to_complete(line: str, offered: list[str]) -> None:
    words = {"COMP_WORDS": line, "COMP_CWORD": str(line.count(" ")), "_RL4SYS_COMPLETE": "complete_bash"}
    code = "import sys; sys.modules['torch'] = None; sys.argv = ['rl4sys']; from rl4sys.cli.main import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    assert (ended.stdout.split(), ended.stderr) == (offered, "")

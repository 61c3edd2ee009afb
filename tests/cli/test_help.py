from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from rl4sys.policy import kernel_set
from rl4sys.policy.native_extension import native_extension

from .commands import Here

COMMANDS = (
    *(
        "train",
        "resume",
        "evaluate",
        "plot",
        "doctor",
        "simulate",
        "sweep",
        "tune",
        "list",
        "show",
        "compare",
        "export",
    ),
    *("cleanup", "tag", "note", "replay-update", "serve", "status", "control", "ui"),
)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", ["40", "80"])
def test_every_command_has_help_with_examples(
    rl4sys: Here, monkeypatch: pytest.MonkeyPatch, command: str, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    code, out, err = rl4sys(command, "--help")
    text = " ".join(out.split())
    assert (code, err) == (0, "")
    assert f"Examples rl4sys {command}" in text
    assert "[bold]" not in text
    assert "[/]" not in text
    assert "--debug" in text


def test_training_explains_overrides(rl4sys: Here) -> None:
    text = " ".join(rl4sys("train", "--help").out.split())
    assert "KEY=VALUE overrides a setting: the key is its path in the config" in text
    assert "algorithm.lr=1e-3" in text
    assert '"network.actor.hidden_dims=[128, 128]"' in text


def test_the_bare_command_shows_help(rl4sys: Here) -> None:
    _, out, err = rl4sys()
    assert all(command in out + err for command in COMMANDS)
    assert "Exit codes 0: success. 1: the answer is no," in " ".join((out + err).split())
    assert "Traceback" not in err


def test_paragraphs_are_as_wide_as_the_terminal(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = [line.rstrip() for line in rl4sys("list", "--help").out.splitlines()]
    first = next(number for number, line in enumerate(lines) if line.startswith(" A CONDITION"))
    assert all(len(line) > 60 for line in lines[first : first + 3])


def test_a_misspelt_command_is_refused_with_a_suggestion(rl4sys: Here) -> None:
    code, _, err = rl4sys("lst")
    assert (code, "Did you mean 'list'" in err) == (2, True)


def test_the_version_is_one_line(rl4sys: Here) -> None:
    assert rl4sys("--version") == (0, "rl4sys 0.2.0\n", "")


def test_a_misspelt_option_is_a_usage_error(rl4sys: Here) -> None:
    code, _, err = rl4sys("train", "--sead", "1")
    assert code == 2
    assert "--sead" in err


def test_the_doctor_names_extras_in_full(rl4sys: Here) -> None:
    code, out, _ = rl4sys("doctor")
    assert code == 0
    assert "torch" in out
    assert "device: auto" in out
    for line in out.splitlines():
        assert ("missing" not in line) or "pip install 'rl4sys[" in line


def test_the_doctor_prints_json(rl4sys: Here) -> None:
    facts = json.loads(rl4sys("doctor", "--json").out)
    assert {part["name"] for part in facts["parts"]} >= {"torch", "gymnasium", "wandb"}


def test_the_doctor_says_what_runs_policies(rl4sys: Here) -> None:
    line = f"policies run with {kernel_set()}"
    assert line in rl4sys("doctor").out
    assert json.loads(rl4sys("doctor", "--json").out)["runtime"] == kernel_set()


def test_the_doctor_says_why_policies_run_with_numpy(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rl4sys_native", None)
    native_extension.cache_clear()
    try:
        out = " ".join(rl4sys("doctor").out.split())
    finally:
        native_extension.cache_clear()
    assert "policies run with numpy (rl4sys-native" in out


def test_a_shell_completes_commands_and_options() -> None:
    words = {"COMP_WORDS": "rl4sys train --algo", "COMP_CWORD": "2", "_RL4SYS_COMPLETE": "complete_bash"}
    command = [sys.executable, "-c", "import sys; sys.argv = ['rl4sys']; from rl4sys.cli.main import main; main()"]
    ended = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["--algorithm"]

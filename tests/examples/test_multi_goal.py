"""The multi-goal example with few steps."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from tests.programs import Program

from cli.commands import finish

from .processes import EXAMPLES, ended, start

MULTI_GOAL = EXAMPLES / "multi_goal"
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.mark.slow
def test_both_algorithms_are_trained_plotted_and_counted(tmp_path: Path) -> None:
    output = tmp_path / "found"
    arguments = ("--steps", "300", "--rollouts", "8", "--output", str(output))
    code, said, complained = finish(Program(str(MULTI_GOAL), *arguments), 240)
    assert code == 0, complained
    summary = json.loads((output / "summary.json").read_text())
    assert summary["algorithms"].keys() == {"sql", "sac"}
    for name, found in summary["algorithms"].items():
        assert f"{name}: step 300/300" in said
        assert found["reached"] == sum(found["goals"].values()) <= 8
        assert (output / f"{name}.png").read_bytes().startswith(PNG)
    assert ended(tmp_path, seconds=30)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_stopping_the_example_ends_all_its_processes(number: signal.Signals, tmp_path: Path) -> None:
    with start(MULTI_GOAL, "--algorithms", "sac", "--output", tmp_path / "found", temporary=tmp_path) as example:
        assert example.stdout is not None
        next(line for line in example.stdout if "step" in line)
        example.send_signal(number)
        code = example.wait(timeout=60)
    assert code == (-signal.SIGKILL if number is signal.SIGKILL else 130)
    assert ended(tmp_path, seconds=60)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [(["--output", "."], "exists already"), (["--steps", "0", "--output", "new"], "expected at least 1 of each")],
)
def test_wrong_arguments_are_refused_before_training(arguments: list[str], complaint: str) -> None:
    code, said, complained = finish(Program(str(MULTI_GOAL), *arguments))
    assert (code, said) == (2, "")
    assert complaint in complained

"""`pip install rl4sys` alone is the client core: what needs more says which extra."""

from __future__ import annotations

import subprocess
import sys

import pytest

WITHOUT = "import sys; sys.modules.update(dict.fromkeys({names!r})); {code}"
COMMAND = "sys.argv = ['rl4sys', {argument!r}]; from rl4sys.cli.main import main; main()"


def run(names: list[str], code: str) -> subprocess.CompletedProcess[str]:
    script = WITHOUT.format(names=names, code=code)
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)


def test_training_in_python_names_the_extra() -> None:
    done = run(["torch"], "import rl4sys; rl4sys.train({})")
    assert done.returncode == 1
    assert "needs the package 'torch'. Install it with: pip install 'rl4sys[train]'" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_the_command_names_the_extra_in_one_line(missing: str) -> None:
    done = run([missing], COMMAND.format(argument="train"))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"error: this needs the package '{missing}'. Install it with: pip install 'rl4sys[train]'\n"


def test_help_and_doctor_work_without_torch() -> None:
    done = run(["torch", "gymnasium"], COMMAND.format(argument="doctor"))
    assert done.returncode == 0
    assert "pip install 'rl4sys[train]'" in done.stdout


def test_training_without_torch_is_one_line() -> None:
    done = run(["torch"], COMMAND.format(argument="train"))
    assert done.returncode == 1
    assert done.stderr == "error: this needs the package 'torch'. Install it with: pip install 'rl4sys[train]'\n"

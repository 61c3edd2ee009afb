"""Every `rl4sys train` on the pages that needs nothing but its arguments has a config that loads."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rl4sys.cli.commands import build

from .code_blocks import to_check
from .documents import ROOT, files
from .shell_commands import commands_of

MISSING = {
    "examples/minatar/": "the package minatar",
    ".swf.gz": "a trace",
    "--from ": "a run",
    "my_simulation:": "an environment of the reader",
    "runs/": "a study",
    "pixels.yaml --ranks": "a config of the reader",
}
"""Parts of commands that need what is not there; only their options are checked."""
TRAININGS = sorted(
    {
        (block.page, tuple(words[words.index("rl4sys") + 1 :]))
        for block in to_check("sh", "bash")
        for words in commands_of(block.text)
        if "rl4sys" in words and words[words.index("rl4sys") + 1 :][:1] == ["train"]
    }
)
COMMANDS = [one for one in TRAININGS if not any(part in " ".join(one[1]) for part in MISSING)]


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the examples, in which a reader types commands."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("page", "arguments"), COMMANDS, ids=[" ".join(arguments) for _, arguments in COMMANDS])
def test_the_config_of_a_training_command_loads(page: Path, arguments: tuple[str, ...], desk: Path) -> None:
    for name, text in [*files(ROOT / "docs" / "quickstart.md"), *files(page)]:
        (desk / name).write_text(text)

    outcome = CliRunner().invoke(build(["train"]), [*arguments, "--dry-run"])

    assert outcome.exit_code == 0, outcome.output or outcome.exception


def test_what_is_missing_is_still_on_the_pages() -> None:
    commands = [" ".join(arguments) for _, arguments in TRAININGS]
    assert [part for part in MISSING if not any(part in command for command in commands)] == []

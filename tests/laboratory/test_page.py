from __future__ import annotations

import pytest
from typer.testing import CliRunner

from docs.documents import ROOT, commands
from rl4sys.cli.commands import build


@pytest.mark.parametrize("command", list(commands(ROOT / "docs" / "laboratory.md")), ids=" ".join)
def test_every_quoted_command_can_be_parsed(command: list[str]) -> None:
    outcome = CliRunner().invoke(build(), [*command, "--help"])
    assert outcome.exit_code == 0, outcome.output or outcome.exception

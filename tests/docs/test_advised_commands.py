from __future__ import annotations

import contextlib
import re
import shlex

import pytest
import typer
from typer._click.exceptions import BadOptionUsage, MissingParameter, NoSuchOption, UsageError

from .advised_commands import AdvisedCommand, advised_commands
from .shell_commands import check_command

COMMANDS = sorted(set(advised_commands()))
VALUES = {
    "VALUE=VALUE": "seed=1",
    "VALUE.…=…": "algorithm.lr=1",
    "KEY=VALUE": "seed=1",
    "gce|ec2|kuberay|sky|slurm": "slurm",
    "COMMAND": "make",
}
"""What a reader puts in the place of a word of a command."""
WHOLE = {
    "rl4sys VALUE --dry-run": "rl4sys sweep sweep.yaml --dry-run",
    "rl4sys cluster init VALUE": "rl4sys cluster init slurm",
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: f"{command.place} {command.text}")
def test_every_command_of_a_page_or_message_can_be_typed(command: AdvisedCommand) -> None:
    _check(command.text)


def test_commands_of_pages_and_messages_are_found() -> None:
    found = {command.text for command in COMMANDS}
    assert {"rl4sys tune STUDY.yaml --dashboard", "rl4sys learners accept VALUE", "rl4sys serve"} <= found
    assert len(COMMANDS) > 80


def test_a_wrong_option_is_found() -> None:
    with pytest.raises(NoSuchOption, match="--record"):
        _check("rl4sys simulate VALUE/VALUE --record episode.mp4")


def test_a_command_that_needs_another_one_is_found() -> None:
    with pytest.raises(UsageError):
        _check("rl4sys token")


def _check(text: str) -> None:
    words = [VALUES.get(word, word) for word in shlex.split(WHOLE.get(text, text))]
    # A sentence may name a command, or a command with an option, without what belongs behind it.
    is_name = all(re.fullmatch("[a-z-]+", word) and not word.startswith("-") for word in words[1:])
    is_option = words[-1].startswith("--")
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.suppress(*[MissingParameter] * is_name, *[BadOptionUsage] * is_option))
        if words[-1] == "--help":
            stack.enter_context(contextlib.suppress(typer.Exit))
        check_command(words)

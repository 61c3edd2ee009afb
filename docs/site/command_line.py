"""Writes the reference of the command line from the help of its commands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from rl4sys.cli.commands import build

_MARKUP = re.compile(r"\[/?(?:bold|dim|italic)?\]")


def command_line_page(introduction: str) -> str:
    """A hand-written introduction, followed by every command with its options."""
    return introduction.rstrip() + "\n\n## Commands\n\n" + "\n".join(_command_sections()) + "\n"


def leaf_commands() -> Iterator[tuple[str, TyperCommand]]:
    """Every command that does something, with its full name."""
    yield from _leaves("rl4sys", typer.main.get_command(build()))


def _leaves(name: str, command: TyperCommand) -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(command, TyperGroup):
        for part, below in sorted(command.commands.items()):
            yield from _leaves(f"{name} {part}", below)
    else:
        yield name, command


def _command_sections() -> Iterator[str]:
    for name, command in leaf_commands():
        yield f"### {name}\n\n{_help(command)}\n{_table(command)}"


def _help(command: TyperCommand) -> str:
    """The docstring of a command: paragraphs, and indented examples as a block."""
    shown: list[str] = []
    for text in (inspect.getdoc(command.callback) or "").split("\n\n"):
        if not text.startswith(" "):
            shown.append(_plain(text))
        elif shown[-1].endswith("\n```"):
            shown[-1] = f"{shown[-1].removesuffix('```')}{_example(text)}\n```"
        else:
            shown.append(f"```sh\n{_example(text)}\n```")
    return "\n\n".join(shown) + "\n"


def _plain(paragraph: str) -> str:
    heading = re.fullmatch(r"\[bold\](.+?)\[/\]", paragraph)
    return f"**{heading[1]}**" if heading else _MARKUP.sub("", paragraph)


def _example(text: str) -> str:
    """Example lines, in which a remark that is set off by blanks becomes a comment."""
    lines = (_MARKUP.sub("", line).strip() for line in text.splitlines())
    return "\n".join(re.sub(r"(\S) {2,}(?!#)\(?(\S.*?)\)?$", r"\1  # \2", line) for line in lines)


def _table(command: TyperCommand) -> str:
    rows = [row for parameter in command.params if (row := _row(parameter)) is not None]
    return "\n".join(["| argument | meaning |", "|---|---|", *rows]) + "\n" if rows else ""


def _row(parameter: TyperArgument | TyperOption) -> str | None:
    if getattr(parameter, "hidden", False) or "--help" in parameter.opts:
        return None
    # typer's arguments have a help of their own, which click's have not.
    text = " ".join(str(getattr(parameter, "help", None) or "").split())
    if isinstance(parameter, TyperArgument):
        name = f"`{parameter.metavar or parameter.name.upper()}`"
    else:
        name = " ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))
    return f"| {name} | {_cell(text)}{_default(parameter)} |"


def _default(parameter: TyperArgument | TyperOption) -> str:
    if parameter.required:
        return " Required."
    value = parameter.default
    if value is None or value is False or callable(value) or value in ((), [], ""):
        return ""
    return "" if value is True else f" Default: `{value}`."


def _cell(text: str) -> str:
    return _MARKUP.sub("", text).replace("|", "\\|")

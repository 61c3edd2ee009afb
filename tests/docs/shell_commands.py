"""Checks commands of shell blocks against what would run them: the command line, the Makefile, the extras, files."""

from __future__ import annotations

import contextlib
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import typer
from typer.core import TyperCommand, TyperGroup

from rl4sys.cli.commands import build, with_known_options
from rl4sys.run_finder import RunNotFound

from .documents import ROOT

_SEPARATORS = frozenset(";|&()<>")
_REDIRECTIONS = {">", ">>", "<", "2>"}
_ASSIGNMENT = re.compile(r"(\w+)=(.*)")
_EXTRA = re.compile(r"rl4sys\[([\w,-]+)\]")
_TOOLS = {"cat", "cd", "date", "diff", "echo", "export", "grep", "head", "ls", "rm", "xargs"}
_TOOLS |= {"journalctl", "pre-commit", "systemctl", "tensorboard"}
"""Programs of every system, or of a dependency, whose options are not checked."""


def commands_of(block: str) -> Iterator[list[str]]:
    """The words of each command of a shell block; variables that it assigns are replaced."""
    variables: dict[str, str] = {}
    for line in block.replace("\\\n", " ").splitlines():
        for words in _split(line):
            if len(words) == 1 and (assigned := _ASSIGNMENT.fullmatch(words[0])):
                variables[assigned[1]] = assigned[2]
                continue
            yield [re.sub(r"^\$(\w+)", lambda used: variables.get(used[1], used[0]), word) for word in words]


def _split(line: str) -> Iterator[list[str]]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    is_file = False
    for word in lexer:
        if word in _REDIRECTIONS:
            is_file = True
        elif set(word) <= _SEPARATORS:
            if words:
                yield words
            words, is_file = [], False
        elif is_file:
            is_file = False
        else:
            words.append(word)
    if words:
        yield words


def check_command(words: list[str], shown: frozenset[str] = frozenset()) -> None:
    """Fail, with the reason, unless the command is one that a reader can type; `shown` are the files of its page."""
    if Path(words[0]).name.startswith("python") and words[1] in shown:
        return None
    while _ASSIGNMENT.fullmatch(words[0]):
        words = words[1:]
    program = Path(words[0]).name
    if words[0] == ".":
        return None
    if program == "timeout":
        return check_command(words[4:] if words[1].startswith("-") else words[2:])
    if program == "torchrun":
        return check_command(["python", *words[words.index("-m") :]])
    if words[:2] == ["rl4sys", "profile"] and "--" in words:
        check_command(words[words.index("--") + 1 :])
    if program in _TOOLS:
        return None
    if "build/release" in words[0]:
        return _check_built(program, words[1:])
    check = _PROGRAMS.get(program)
    assert check is not None, f"'{program}' is a program that no test knows; mark the block: <!-- not run: why -->"
    return check(words[1:])


def _check_rl4sys(arguments: list[str]) -> None:
    # The runs that pages name are not here; options are parsed before runs are looked for.
    with contextlib.suppress(RunNotFound):
        parse_arguments(arguments)


def parse_arguments(arguments: list[str]) -> tuple[TyperCommand | TyperGroup, dict[str, object]]:
    """The command of `rl4sys` that some arguments call, and its parameters; raises for wrong arguments."""
    command: TyperCommand | TyperGroup = _app()
    rest, parent = with_known_options(arguments), None
    while True:
        context = command.make_context(command.name or "rl4sys", list(rest), parent=parent)
        if not isinstance(command, TyperGroup):
            return command, context.params
        rest = [*context._protected_args, *context.args]
        assert rest, f"'{command.name}' needs a command"
        _, found, rest = command.resolve_command(context, rest)
        assert found is not None
        command, parent = found, context


@cache
def _app() -> TyperCommand | TyperGroup:
    return typer.main.get_command(build())


def _check_pip(arguments: list[str]) -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {extra for word in arguments for found in _EXTRA.findall(word) for extra in found.split(",")}
    assert arguments[0] in ("install", "download")
    assert named <= extras.keys(), f"unknown extras: {named - extras.keys()}"


def _check_make(arguments: list[str]) -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {word for word in arguments if "=" not in word}
    assert named <= targets, f"the Makefile has no target {named - targets}"


def _check_python(arguments: list[str]) -> None:
    if arguments[0] == "-m":
        if arguments[1] in ("rl4sys", "rl4sys.cli"):
            return _check_rl4sys(arguments[2:])
        if arguments[1] in ("venv", "pip"):
            return None
        place = ROOT / arguments[1].replace(".", "/")
        return _check_options(place if place.is_dir() else place.with_suffix(".py"), arguments[2:])
    assert (ROOT / arguments[0]).exists(), f"there is no {arguments[0]}"
    return _check_options(ROOT / arguments[0], arguments[1:])


def _check_options(place: Path, arguments: list[str]) -> None:
    """Every option occurs in the sources of a program."""
    sources = place.glob("*.py") if place.is_dir() else [place]
    text = "".join(source.read_text("utf-8") for source in sources)
    assert text, f"there is no {place}"
    unknown = [word for word in arguments if re.match(r"--\w", word) and f'"{word.partition("=")[0]}"' not in text]
    assert unknown == [], f"{place.name} has no option {unknown}"


def _check_pytest(arguments: list[str]) -> None:
    missing = [word for word in arguments if word.startswith("tests/") and not (ROOT / word).exists()]
    assert missing == []


def _check_presets(arguments: list[str]) -> None:
    presets = (ROOT / "cpp" / "CMakePresets.json").read_text()
    named = [arguments[place + 1] for place, word in enumerate(arguments) if word == "--preset"]
    assert [name for name in named if f'"name": "{name}"' not in presets] == []


def _check_built(program: str, arguments: list[str]) -> None:
    sources = [
        *(ROOT / "cpp" / "examples").glob(f"{program}.cpp"),
        *(ROOT / "cpp" / "examples" / program).glob("*.cpp"),
    ]
    text = "".join(source.read_text() for source in sources)
    assert text, f"cpp/examples has no {program}"
    unknown = [word for word in arguments if word.startswith("--") and word.removeprefix("--") not in text]
    assert unknown == [], f"{program} has no option {unknown}"


_PROGRAMS: dict[str, Callable[[list[str]], None]] = {
    "rl4sys": _check_rl4sys,
    "pip": _check_pip,
    "make": _check_make,
    "python": _check_python,
    "python3": _check_python,
    "pytest": _check_pytest,
    "cmake": _check_presets,
    "ctest": _check_presets,
}

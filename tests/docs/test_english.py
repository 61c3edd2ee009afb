"""Words and phrases that must not come back, in code, comments, messages, names of tests and pages.

They were a private dialect: a reader of the field's papers and libraries should recognise every noun. Each pattern is
listed with what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from .documents import ROOT

INSTEAD = {
    r"anew": "again, from the start, rebuilt",
    r"whoever": "name who it is: the caller, the user, the process",
    r"nobody|somebody|everybody|anybody": "no one, no client, another process, a user, all clients",
    r"(is|are|was|were|be|been|being) told": "is reported, is warned, is given",
    r"go(es)? on|went on": "continue, resume",
    r"for ?ever": "permanently, without end, always",
    r"nurser(y|ies)": "fork server",
    r"farewells?": "exit hook",
    r"workplaces?": "shared state",
    r"doubts?": "warning",
    r"surroundings": "context",
    r"at hand": "available, in memory",
    r"how good": "return, score",
    r"numbers that are none|is no number": "NaN, Inf, not finite",
    r"judges?|judged": "critic, q_values, check",
    r"climbs?|climbed": "actor step, ascend",
    r"patience": "timeout, limit",
    r"stretch(es)?": "span, range",
    r"vouch(es|ed)?( for)?": "trust, verify",
}
"""What a pattern matches, whole words in any case and with underscores for blanks, and what to write instead."""

ALLOWED = {
    ("src/rl4sys/replay/__init__.py", "surroundings"): "the former name of BufferContext, which plug-ins may import",
    ("tests/replay/test_goal_rewards.py", "surroundings"): "a plug-in that imports the former name",
}
"""(file, phrase) that may stay, such as a name in a stored format, with the reason."""

PLACES = (
    "src",
    "tests",
    "docs",
    "cpp",
    "examples",
    "benchmarks",
    "conformance",
    "proto",
    "configs",
    "deploy",
    ".github",
    ".ci",
)
KINDS = {".py", ".pyi", ".md", ".cpp", ".hpp", ".h", ".c", ".inc", ".proto", ".yaml", ".yml", ".txt", ".cmake", ".sh"}
SKIPPED = ("src/rl4sys/wire/generated/", "cpp/build/", "tests/docs/test_english.py", "benchmarks/.venv")


def _files() -> Iterator[Path]:
    yield from (page for page in ROOT.glob("*") if page.suffix in {".md", ".toml", ".cff"} or page.name == "Makefile")
    for place in PLACES:
        yield from (path for path in (ROOT / place).rglob("*") if path.suffix in KINDS)


FILES = {
    name: path.read_text("utf-8")
    for name, path in sorted((path.relative_to(ROOT).as_posix(), path) for path in _files())
    if not name.startswith(SKIPPED)
}


def _found(pattern: str, text: str) -> Iterator[tuple[int, str]]:
    # A phrase may be broken over two lines, also of a comment, and is written with underscores in a name.
    spaced = pattern.replace(" ", r"(?:[\s_]|\n\s*(?:#|//|\*))+")
    for match in re.finditer(rf"(?<![A-Za-z])(?:{spaced})(?![A-Za-z])", text, re.IGNORECASE):
        yield text.count("\n", 0, match.start()) + 1, " ".join(re.split(r"[\s_#/*]+", match[0])).lower()


@pytest.mark.parametrize("pattern", INSTEAD)
def test_a_phrase_that_was_replaced_has_not_come_back(pattern: str) -> None:
    found = [
        f"{name}:{line}: {phrase!r}"
        for name, text in FILES.items()
        for line, phrase in _found(pattern, text)
        if (name, phrase) not in ALLOWED
    ]
    assert found == [], f"write instead: {INSTEAD[pattern]}\n" + "\n".join(found)


def test_names_are_searched_like_sentences() -> None:
    text = "def test_it_is_told():\n    # it is\n    # told\n    retold, is_tolderance"
    assert [line for line, _ in _found("is told", text)] == [1, 2]


def test_many_files_are_searched() -> None:
    assert len(FILES) > 500


def test_what_is_allowed_is_still_there() -> None:
    found = {
        (name, phrase) for pattern in INSTEAD for name, text in FILES.items() for _, phrase in _found(pattern, text)
    }
    assert ALLOWED.keys() <= found

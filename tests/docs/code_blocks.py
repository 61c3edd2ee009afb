"""Every fenced block of the pages, with the reason why it is not run if it has a marker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

from .documents import PAGES, ROOT

_FENCE = re.compile(r"^( *)```(\S*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_MARKER = re.compile(r"<!-- not run: (\S(?:(?!-->|```).)*?) -->\s*\Z", re.DOTALL)


class CodeBlock(NamedTuple):
    """A fenced block. `reason` is what the marker `<!-- not run: why -->` above it says, or empty."""

    page: Path
    line: int
    language: str
    text: str
    reason: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"


def blocks_of(page: Path) -> Iterator[CodeBlock]:
    """The blocks of a page, in order."""
    text = page.read_text("utf-8")
    for fence in _FENCE.finditer(text):
        before = text[: fence.start()]
        marker = _MARKER.search(before[-500:])
        yield CodeBlock(page, before.count("\n") + 1, fence[2], dedent(fence[3]), marker[1] if marker else "")


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def to_check(*languages: str) -> list[CodeBlock]:
    """The blocks in some languages that have no marker."""
    return [block for block in BLOCKS if block.language in languages and not block.reason]

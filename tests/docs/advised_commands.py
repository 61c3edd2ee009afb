"""Commands that pages and messages of the package advise a reader to type."""

from __future__ import annotations

import ast
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from .documents import ROOT

PACKAGE = ROOT / "src" / "rl4sys"
_IN_TEMPLATE = re.compile(r"(?:<code>|data-copy=\")(rl4sys .*?)(?:</code>|\")", re.DOTALL)
_IN_TEXT = re.compile(
    r"`(rl4sys [^`]+)`|(?:[:;] |[:;]\n *|^)(rl4sys [a-z].*?)[.,)]?(?:; |\. |, (?:or|then) | \(|$)", re.MULTILINE
)
_INSERTED = re.compile(r"{{.*?}}|{%.*?%}")


class AdvisedCommand(NamedTuple):
    """A command, with `VALUE` for every part that is inserted when it is shown."""

    place: str
    text: str


def advised_commands() -> list[AdvisedCommand]:
    """The commands of all templates and of all texts in the sources, docstrings excepted."""
    templates = sorted((PACKAGE / "ui" / "templates").glob("*.html"))
    sources = sorted(path for path in PACKAGE.rglob("*.py") if "generated" not in path.parts)
    return [
        *(AdvisedCommand(path.name, text) for path in templates for text in _of_template(path.read_text("utf-8"))),
        *(
            AdvisedCommand(f"{path.relative_to(PACKAGE).as_posix()}:{line}", text)
            for path in sources
            for line, text in _of_source(path)
        ),
    ]


def _of_template(text: str) -> Iterator[str]:
    for found in _IN_TEMPLATE.findall(text):
        yield html.unescape(_INSERTED.sub("VALUE", found))


def _of_source(path: Path) -> Iterator[tuple[int, str]]:
    tree = ast.parse(path.read_text("utf-8"))
    docstrings = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    parts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if id(node) in docstrings | parts or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        for quoted, plain in _IN_TEXT.findall(_text(node)):
            yield node.lineno, quoted or plain


def _text(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(part.value if isinstance(part, ast.Constant) else "VALUE" for part in node.values)

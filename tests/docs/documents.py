"""The pages of the project: their code blocks, links, headings and files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for place in (
        ROOT.glob("*.md"),
        (ROOT / "cpp").glob("*.md"),
        *((ROOT / name).rglob("*.md") for name in ("docs", "examples", "conformance")),
    )
    for page in place
)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in one language."""
    return [text for kind, text in _FENCE.findall(page.read_text("utf-8")) if kind == language]


def links(page: Path) -> Iterator[str]:
    """The link targets of a page within the project."""
    for pair in _LINK.findall(_FENCE.sub("", page.read_text("utf-8"))):
        target = "".join(pair)
        if not target.startswith(("http://", "https://", "mailto:")):
            yield target


def anchors(page: Path) -> set[str]:
    """The link anchors of the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def files(page: Path) -> Iterator[tuple[str, str]]:
    """Name and contents of the files that a page shows: blocks that begin with a comment like `# my.yaml`."""
    for language in ("python", "yaml"):
        for block in blocks(page, language):
            if named := re.match(r"# ([\w.]+\.(?:py|yaml))\n", block):
                yield named[1], block


def page_text(name: str) -> str:
    """The text of a page in docs/."""
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def missing(names: Iterable[str], text: str) -> list[str]:
    """The names that do not occur in the code of a page."""
    return sorted(name for name in names if not re.search(rf"`[^`\n]*(?<![\w/]){re.escape(name)}(?!\w)[^`\n]*`", text))

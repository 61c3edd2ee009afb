"""The pages of the project: their code blocks, links, headings and commands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
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
GUIDES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("quickstart", "own_algorithm", "runbook", "deployment")),
]
"""Pages whose commands readers type."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
_OTHER_PROGRAMS = {"pip", "systemctl", "journalctl", "docker", "useradd", "install"}
"""Programs that may have the name as an argument."""
_ENDS_A_COMMAND = {"|", ">", "&&", "&", ";", "#"}


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


def commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every `rl4sys` command in the shell blocks of a page."""
    for block in blocks(page, "sh"):
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if "rl4sys" in words and words[0] not in _OTHER_PROGRAMS:
                rest = words[words.index("rl4sys") + 1 :]
                stop = next((place for place, word in enumerate(rest) if word in _ENDS_A_COMMAND), len(rest))
                yield rest[:stop]


def files(page: Path) -> Iterator[tuple[str, str]]:
    """Name and contents of the files that a page shows: blocks that begin with a comment like `# my.yaml`."""
    for language in ("python", "yaml"):
        for block in blocks(page, language):
            if named := re.match(r"# ([\w.]+\.(?:py|yaml))\n", block):
                yield named[1], block

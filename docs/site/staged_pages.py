"""Collects the pages of the site: where each goes, and what its links become."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://github.com/rl4sys/rl4sys"
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "results/benchmarks.md",
    "conformance/README.md": "conformance.md",
    "cpp/README.md": "cpp.md",
    "examples/batch_scheduling/README.md": "examples/batch_scheduling.md",
    "examples/lunar_lander/README.md": "examples/lunar_lander.md",
    "examples/multi_goal/README.md": "examples/multi_goal.md",
    "examples/prefork/README.md": "examples/prefork.md",
    "src/rl4sys/records/FORMAT.md": "records_format.md",
}
"""Pages outside docs/, and their names in the site."""
_IMAGES = {".png", ".svg", ".gif", ".jpg"}
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))|(?<=src=\")([^\"]+)(?=\")")
_MARKER = re.compile(r"^<!-- not run: .* -->\n", re.MULTILINE)


def stage(pages: Path) -> None:
    """Write every page with its images into a directory, with links that hold there."""
    places = staged_names()
    for source, name in places.items():
        target = pages / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            target.write_text(staged_text(source, places), encoding="utf-8")
        else:
            target.write_bytes(source.read_bytes())
    (pages / "decisions" / "index.md").write_text(_decisions(), encoding="utf-8")


def _decisions() -> str:
    """A list of the pages about decisions, so that a new one needs no entry in mkdocs.yml."""
    lines = ["# Decisions", "", "What a newcomer may question, one page each: context, choice, consequences.", ""]
    for page in sorted((ROOT / "docs" / "decisions").glob("*.md")):
        number, title = page.name[:4], page.read_text("utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f"- {number}: [{re.sub(r'^[0-9]+[.:]? *', '', title)}]({page.name})")
    return "\n".join(lines) + "\n"


def staged_names() -> dict[Path, PurePosixPath]:
    """The name in the site of every page and image."""
    docs = ROOT / "docs"
    found = {ROOT / source: PurePosixPath(name) for source, name in ELSEWHERE.items()}
    for path in sorted(docs.rglob("*")):
        if path.suffix == ".md" or path.suffix in _IMAGES:
            name = path.relative_to(docs).as_posix()
            found[path] = PurePosixPath(re.sub(r"(^|/)README\.md$", r"\1index.md", name))
    return found


def staged_text(source: Path, places: dict[Path, PurePosixPath]) -> str:
    """A page as the site has it: links changed outside of code, and no markers for the tests."""
    here = places[source]

    def changed(match: re.Match[str]) -> str:
        return _changed_link(match[0], source, here, places)

    return _outside_of_code(source.read_text("utf-8"), lambda text: _LINK.sub(changed, _MARKER.sub("", text)))


def _outside_of_code(text: str, change: Callable[[str], str]) -> str:
    def parts() -> Iterator[str]:
        for part in _FENCE.split(text):
            yield part if _FENCE.fullmatch(part) else change(part)

    return "".join(parts())


def _changed_link(link: str, source: Path, here: PurePosixPath, places: dict[Path, PurePosixPath]) -> str:
    name, mark, anchor = link.partition("#")
    if not name or re.match(r"[a-z]+:", link):
        return link
    target = (source.parent / name).resolve()
    if target in places:
        return os.path.relpath(places[target], here.parent) + mark + anchor
    kind = "tree" if target.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{target.relative_to(ROOT).as_posix()}{mark}{anchor}"

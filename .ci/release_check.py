"""Check that a tag, the version of the package, the changelog and the citation name the same release."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def disagreements(tag: str) -> list[str]:
    """What does not name the release of `tag`, such as v0.2.0."""
    release = tag.removeprefix("v")
    wanted = {
        "src/rl4sys/version.py": rf'^__version__ = "{re.escape(release)}"$',
        "CHANGELOG.md": rf"^## \[?{re.escape(release)}\]?( |$)",
        "cpp/pyproject.toml": rf'^version = "{re.escape(release)}"$',
        "pyproject.toml": rf'^    "rl4sys-native=={re.escape(release)}; ',
        "CITATION.cff": rf"^version: {re.escape(release)}$",
    }
    return [name for name, line in wanted.items() if not re.search(line, (ROOT / name).read_text(), re.MULTILINE)]


if __name__ == "__main__":
    tag = sys.argv[1]
    if wrong := disagreements(tag):
        raise SystemExit(f"The tag is {tag!r}; {', '.join(wrong)} named another release. Change them, then tag again.")

"""Writes configuration.md from the docstrings of the configs, or with --check says whether it is current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rl4sys.config import reference
from rl4sys.experiments import ExperimentConfig

PAGE = Path(__file__).parent / "configuration.md"

INTRODUCTION = """\
Every key of an experiment, written from the docstrings of the code by `make docs`; change it there. How files are laid
over one another and changed from the command line is told in the
[quick start](quickstart.md#change-things). A misspelt key is refused, with a suggestion. `buffer` may be left
out, and so may its `type`: the algorithm's usual buffer takes their place.
"""


def main() -> int:
    """Write the page; with --check, return 1 if it is not what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the written page; change nothing")
    title, _, rest = reference(ExperimentConfig).partition("\n\n")
    text = f"{title}\n\n{INTRODUCTION}\n{rest}"
    if not parser.parse_args().check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{PAGE.name} is not current; run: make docs\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

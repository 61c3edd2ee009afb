"""Writes configuration.md and server.md from the docstrings of the configs; --check says whether they are current."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rl4sys.config import reference
from rl4sys.experiments import ExperimentConfig
from rl4sys.server.config import ServerConfig

HERE = Path(__file__).parent

EXPERIMENT = """\
# Configuration

Every key of an experiment, written from the docstrings of the code by `make docs`; change it there. How files are
merged and overridden from the command line is described in [config files](configs.md). A misspelt key is refused with a
suggestion. `buffer` and its `type` may be omitted: the default is the algorithm's usual buffer.
"""
SERVER = """\
# Configuration of a server

Every key of the file that `rl4sys serve --config FILE` reads, written from the docstrings of the code by `make docs`;
change it there. Options of the command line override the file. [What a server does](live.md), and an
[example](../configs/servers/lunar_lander.yaml).
"""


def pages() -> dict[Path, str]:
    """The text of each page."""
    written = {}
    for name, config, introduction in (
        ("configuration.md", ExperimentConfig, EXPERIMENT),
        ("server.md", ServerConfig, SERVER),
    ):
        _, _, rest = reference(config).partition("\n\n")
        written[HERE / name] = f"{introduction}\n{rest}"
    return written


def main() -> int:
    """Write the pages; with --check, return 1 if one is not what would be written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the written pages; change nothing")
    is_checking = parser.parse_args().check
    for page, text in pages().items():
        if not is_checking:
            page.write_text(text, encoding="utf-8")
        elif not page.is_file() or page.read_text(encoding="utf-8") != text:
            sys.stderr.write(f"{page.name} is not current; run: make docs\n")
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

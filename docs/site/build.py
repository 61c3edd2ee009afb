"""Builds the documentation site: collects the pages, writes the reference from the code, and calls Zensical."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

from command_line import command_line_page
from cpp_api import can_write_cpp_api, write_cpp_api
from protocol import protocol_page
from python_api import python_pages
from staged_pages import ROOT, stage

PAGES, SITE = ROOT / "build" / "pages", ROOT / "src" / "rl4sys" / "site"


def main() -> int:
    """Build the site; a link without a target is an error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, help="a directory for pages and site, instead of those in mkdocs.yml")
    parser.add_argument("--complete", action="store_true", help="fail if a part cannot be written here")
    arguments = parser.parse_args()
    into = arguments.into
    config, pages, site = ROOT / "mkdocs.yml", PAGES, SITE
    if into is not None:
        config, pages, site = into / "mkdocs.yml", into / "pages", into / "site"
        config.write_text(re.sub(r"(?m)^(docs|site)_dir: .*/", r"\1_dir: ", (ROOT / "mkdocs.yml").read_text("utf-8")))
    if arguments.complete and not can_write_cpp_api():
        parser.error("doxygen is missing, so the site would have no C++ API. Install it, or leave out --complete.")
    for directory in (pages, site):
        shutil.rmtree(directory, ignore_errors=True)
    stage(pages)
    _write_reference(pages)
    write_cpp_api(pages)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--clean", "--strict", "--config-file", config],
        cwd=config.parent,
        check=False,
    )
    return built.returncode


def _write_reference(pages: Path) -> None:
    """Write what the site has and the repository has not: pages made from the code."""
    commands = pages / "command_line.md"
    written = {
        "command_line.md": command_line_page(commands.read_text("utf-8")),
        "protocol.md": protocol_page(ROOT / "proto" / "rl4sys" / "v1"),
        **dict(python_pages()),
    }
    for name, text in written.items():
        (pages / name).parent.mkdir(exist_ok=True)
        (pages / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main())

"""Puts the reference of the C++ headers into the site, as Doxygen writes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from staged_pages import REPOSITORY, ROOT

_PAGE = """\
# C++ API

Classes and functions of the public headers, written by Doxygen from their comments: [open it](cpp_api/html/index.html).
The [guide to the C++ client](cpp.md) is the place to begin.
"""
_WITHOUT = """\
# C++ API

Doxygen was not installed when this site was built, so the reference of the headers is missing here. The comments are in
[cpp/include/rl4sys](REPOSITORY/tree/main/cpp/include/rl4sys).
"""


def can_write_cpp_api() -> bool:
    """Whether Doxygen is installed."""
    return shutil.which("doxygen") is not None


def write_cpp_api(pages: Path) -> None:
    """Write the page of the C++ API, and what Doxygen makes of the headers beside it."""
    doxyfile = ROOT / "cpp" / "Doxyfile"
    has_doxygen = doxyfile.is_file() and can_write_cpp_api()
    if has_doxygen:
        settings = f'{doxyfile.read_text("utf-8")}\nOUTPUT_DIRECTORY = "{pages / "cpp_api"}"\n'
        (pages / "cpp_api").mkdir()
        subprocess.run(["doxygen", "-"], input=settings, cwd=doxyfile.parent, text=True, check=True)
    text = _PAGE if has_doxygen else _WITHOUT.replace("REPOSITORY", REPOSITORY)
    (pages / "cpp_api.md").write_text(text, encoding="utf-8")

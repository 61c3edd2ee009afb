"""The screenshots of the pages are made from real runs and a real server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image
from tests.ui.conftest import missing

from .documents import ROOT, page_text

NAMES = ("ui-runs", "ui-run", "ui-compare", "ui-study", "fleet", "ui-learner")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_screenshot_can_be_made_again(tmp_path: Path) -> None:
    if shutil.which("chromium") is None:
        missing("chromium is missing; as root, tests/ui/packages.sh installs it")
    command = [sys.executable, ROOT / "docs" / "write_screenshots.py", "--into", tmp_path]

    written = subprocess.run(command, capture_output=True, text=True)

    assert written.returncode == 0, written.stderr
    for name in NAMES:
        with Image.open(tmp_path / f"{name}.png") as picture:
            assert picture.size == (1400, 800)
            # A page that did not load is a text on a plain ground.
            assert len(picture.convert("RGB").getcolors(1 << 24) or ()) > 50, name


def test_every_screenshot_is_on_the_page() -> None:
    assert [name for name in NAMES if f"images/{name}.png" not in page_text("ui")] == []

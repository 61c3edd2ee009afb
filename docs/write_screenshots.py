"""Write the screenshots of docs/ui.md, from a directory of runs that has some experiments, a sweep and a study.

.venv/bin/python docs/write_screenshots.py runs --run NAME --compare 'env=CartPole-v1' --study NAME
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
from pathlib import Path
from urllib.parse import quote

from PIL import Image
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.ui.serving import served_pages  # noqa: E402

from rl4sys.ui.security import LINK_TOKEN  # noqa: E402
from rl4sys.ui.settings import UiSettings  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1400, "height": 800}
COLOURS = 256
"""A page has few colours; with a palette of them, a picture is half as large."""


def take(page: Page, name: str) -> None:
    """Write what the window shows."""
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE).save(IMAGES / f"ui-{name}.png", optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--run", required=True, help="the run to show")
    parser.add_argument("--compare", required=True, help="conditions for the runs to compare")
    parser.add_argument("--study", required=True, help="the study or sweep to show")
    chosen = parser.parse_args()
    name = chosen.runs.resolve().name
    paths = {
        "runs": ("/runs", "light"),
        "run": (f"/run/{name}/{chosen.run}", "light"),
        "compare": (f"/compare?filter={quote(chosen.compare)}&metrics=return,rollout/return", "dark"),
        "study": (f"/sweep/{name}/{chosen.study}", "light"),
    }
    with served_pages(UiSettings(runs=(chosen.runs,))) as pages, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        for title, (path, scheme) in paths.items():
            page = browser.new_context(viewport=SIZE, color_scheme=scheme).new_page()
            page.goto(f"{pages.url}/?{LINK_TOKEN}={pages.sessions.link_token}")
            page.wait_for_url("**/runs")
            page.goto(f"{pages.url}{path}")
            if title in ("run", "compare"):
                page.wait_for_selector(".plot canvas")
            page.wait_for_timeout(500)
            take(page, title)
        browser.close()


if __name__ == "__main__":
    main()

"""Write the screenshots of docs/ui.md: trains short runs, a sweep and a study, and starts a server with three clients.

.venv/bin/python docs/write_screenshots.py [--into DIRECTORY]
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlencode

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.ui.serving import ServedPages, served_pages  # noqa: E402
from tests.ui.small_fleet import LEARNER, SmallFleet  # noqa: E402

from rl4sys.ui.security import LINK_TOKEN  # noqa: E402
from rl4sys.ui.settings import UiSettings  # noqa: E402

IMAGES = ROOT / "docs" / "images"
SIZE = {"width": 1400, "height": 800}
COLOURS = 256
"""A page has few colours; with a palette of them, a picture is half as large."""
HOST = "lab"
"""What the pages call the machine."""
EPISODES = 200
"""Of the server, until its curves show something."""
STEPS = ("training.total_timesteps=4096", "training.eval_frequency=512", "training.num_eval_episodes=5")
STUDY = """\
base_config: ppo_cartpole.yaml
overrides: {training.total_timesteps: 1024, training.eval_frequency: 512, training.num_eval_episodes: 2}
space:
  algorithm.lr: {log_uniform: [1e-4, 1e-2]}
  algorithm.gamma: {uniform: [0.9, 0.999]}
  algorithm.epochs: {int: [2, 8]}
trials: 6
"""


def train(place: Path) -> None:
    """Two experiments with three seeds each, and a study. Seeds are given, so the curves are always the same."""
    for algorithm in ("ppo", "dqn"):
        _rl4sys(place, "train", "--algorithm", algorithm, "--env", "CartPole-v1", "--seed", "0,1,2", *STEPS)
    (place / "learning_rates.yaml").write_text(STUDY)
    _rl4sys(place, "tune", "learning_rates.yaml", "--jobs", "2")
    for process in (place / "runs").rglob("process.json"):
        process.write_text(json.dumps(json.loads(process.read_text()) | {"host": HOST}))


def _rl4sys(place: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "rl4sys", *arguments], cwd=place, check=True, stdout=subprocess.DEVNULL)


def shoot_runs(browser: Browser, runs: Path, into: Path) -> None:
    """The pages of all runs, of one run, of a comparison and of a study."""
    run = min(path.name for path in runs.glob("ppo-*"))
    paths = {
        "ui-runs": ("/runs", "light", "tbody tr"),
        "ui-run": (f"/run/runs/{quote(run)}", "light", ".plot canvas"),
        "ui-compare": (
            f"/compare?filter={quote('env=CartPole-v1 id=*CartPole*')}&metrics=return,rollout/return",
            "dark",
            ".plot canvas",
        ),
        "ui-study": ("/sweep/runs/learning_rates", "light", "svg.coordinates"),
    }
    with served_pages(UiSettings(runs=(runs,))) as pages:
        for name, (path, scheme, drawn) in paths.items():
            with _signed_in(browser, pages, scheme) as page:
                page.goto(f"{pages.url}{path}")
                page.wait_for_selector(drawn)
                take(page, into / f"{name}.png")


def shoot_fleet(browser: Browser, place: Path, into: Path) -> None:
    """The pages of a server with three clients, of which one was killed, and of its learner."""
    fleet = SmallFleet(place)
    try:
        fleet.start()
        settings = UiSettings(servers=(fleet.server.address,), ask_seconds=0.2)
        with served_pages(settings) as pages, _signed_in(browser, pages, "light") as page:
            page.goto(f"{pages.url}/fleet")
            page.wait_for_selector(".curve canvas")
            page.wait_for_function(
                "(count) => Number(document.querySelector('[aria-label=Learners] td:nth-child(10)')"
                ".textContent.replaceAll(',', '')) >= count",
                arg=EPISODES,
                timeout=120_000,
            )
            fleet.kill_client("node-3")
            page.wait_for_selector("text=left within the hour")
            take(page, into / "fleet.png")
            page.goto(f"{pages.url}/fleet/learner?{urlencode({'name': LEARNER})}")
            page.wait_for_selector("[data-key=checkpoints]", timeout=120_000)
            page.wait_for_selector(".curve canvas")
            take(page, into / "ui-learner.png")
    finally:
        fleet.close()


@contextmanager
def _signed_in(browser: Browser, pages: ServedPages, scheme: str) -> Iterator[Page]:
    context = browser.new_context(viewport=SIZE, color_scheme=scheme, reduced_motion="reduce")
    try:
        page = context.new_page()
        page.goto(f"{pages.url}/?{LINK_TOKEN}={pages.sessions.link_token}")
        page.wait_for_selector("main")
        yield page
    finally:
        context.close()


def take(page: Page, path: Path) -> None:
    """Write what the window shows, once fonts and charts are drawn."""
    page.evaluate("() => document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
    picture = Image.open(io.BytesIO(page.screenshot()))
    picture.convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=IMAGES, help="where the six images are written")
    into = parser.parse_args().into.resolve()
    with tempfile.TemporaryDirectory(prefix="rl4sys-screenshots-") as place, sync_playwright() as playwright:
        train(Path(place))
        # Relative paths, so that the pages do not show a temporary directory.
        os.chdir(place)
        executable = shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        shoot_runs(browser, Path("runs"), into)
        shoot_fleet(browser, Path(place) / "fleet", into)
        browser.close()


if __name__ == "__main__":
    main()

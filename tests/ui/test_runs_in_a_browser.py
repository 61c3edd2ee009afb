"""The pages of runs in a real browser: drawn, followed while a run trains, in four windows, with hostile names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.laboratory.example_runs import written
from tests.ui.serving import ServedPages, served_pages
from tests.ui.test_studies_page import write_study, write_sweep
from tests.ui.views import VIEWS, View, accessibility_problems, overflow

from rl4sys.ui.settings import UiSettings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

HOSTILE = "\"><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
PATHS = (
    "/runs",
    "/run/runs/ppo-0",
    *(f"/run/runs/ppo-0?view={view}" for view in ("settings", "machine", "evaluations", "videos", "output")),
    *("/run/runs/hostile?view=evaluations", "/run/runs/hostile?view=videos", "/run/runs/hostile?view=output"),
    "/compare",
    "/compare?filter=id%3Dppo-*&seeds=1",
    "/sweeps",
    "/sweep/runs/rates",
    "/sweep/runs/search",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("laboratory") / "runs"
    for seed in range(3):
        written(root / f"ppo-{seed}", [100.0, 200.0 + seed, 300.0 - seed], seed=seed, lr=0.001)
        written(root / f"ppo-fast-{seed}", [150.0, 250.0 + seed, 400.0 - seed], seed=seed, lr=0.01)
    hostile = written(root / "hostile", [1.0], algorithm=HOSTILE, environment=HOSTILE, lr=HOSTILE)
    (hostile / "labels.json").write_text(json.dumps({"tags": [HOSTILE], "notes": [{"time": HOSTILE, "text": HOSTILE}]}))
    (hostile / "output.txt").write_text(HOSTILE)
    (hostile / "videos").mkdir()
    (hostile / "videos" / "episode-1.mp4").write_bytes(b"no video")
    record = {"step": 200, "metrics": {HOSTILE: 1.0}, "timing": {}}
    (hostile / "metrics.jsonl").write_text(json.dumps(record) + "\n")
    write_sweep(root / "rates")
    write_study(root / "search", HOSTILE)
    return root


@pytest.fixture(scope="module")
def pages(root: Path) -> Iterator[ServedPages]:
    with served_pages(UiSettings(runs=(root,))) as pages:
        yield pages


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_every_page_fits_its_window_and_can_be_read_aloud(browser: Browser, pages: ServedPages, view: View) -> None:
    with pages.opened(browser, PATHS[0], view) as page:
        for path in PATHS:
            page.goto(f"{pages.url}{path}")
            page.wait_for_load_state("load")
            assert (path, overflow(page), accessibility_problems(page)) == (path, 0, [])


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_pages_that_say_what_is_wrong_fit_and_can_be_read_aloud(
    browser: Browser, pages: ServedPages, view: View
) -> None:
    with pages.opened(browser, "/runs", view, may_go_wrong=True) as page:
        for path in ("/nowhere", "/run/runs/unknown", "/runs?sort=unknown", "/compare?filter=id%3Dunknown"):
            page.goto(f"{pages.url}{path}")
            assert (path, overflow(page), accessibility_problems(page)) == (path, 0, [])
        page.context.clear_cookies()
        page.goto(f"{pages.url}/runs")
        assert "Open the link" in page.locator("body").inner_text()
        assert (overflow(page), accessibility_problems(page)) == (0, [])


def test_a_new_line_of_metrics_reaches_the_chart(browser: Browser, pages: ServedPages, root: Path) -> None:
    with pages.opened(browser, "/run/runs/ppo-2") as page:
        page.wait_for_selector(".plot canvas")
        record = {"step": 400, "metrics": {"evaluation/return": 987.5}, "timing": {}}
        with (root / "ppo-2" / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        page.wait_for_function("() => document.querySelector('.last').textContent === '987.5'")


def test_filtering_changes_the_table_and_the_address(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, "/runs") as page:
        page.fill("#conditions", "id=ppo-fast-*")
        page.wait_for_function("() => document.querySelector('.count').textContent === '3 runs'")
        assert "filter=id%3Dppo-fast-*" in page.url


def test_conditions_over_settings_wait_for_enter(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, "/runs") as page:
        page.fill("#conditions", "algorithm.lr=0.01 id=ppo-*")
        assert "filter" not in page.url
        page.press("#conditions", "Enter")
        page.wait_for_function("() => document.querySelector('.count').textContent === '3 runs'")


def test_a_heading_sorts_and_reverses_by_keyboard(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, "/runs?filter=id%3Dppo-fast-*") as page:
        heading = page.get_by_role("columnheader", name="Return")
        orders, seeds = [], []
        for _ in range(3):
            heading.get_by_role("link").focus()
            with page.expect_navigation():
                page.keyboard.press("Enter")
            orders.append(heading.get_attribute("aria-sort"))
            seeds.append([cell.split("-")[-1].strip() for cell in page.locator("td.id").all_inner_texts()])
        assert orders == ["descending", "ascending", "descending"]
        assert seeds[0] == seeds[1][::-1] == seeds[2]


def test_a_table_follows_runs_that_train(browser: Browser, pages: ServedPages, root: Path) -> None:
    with pages.opened(browser, "/runs?filter=algorithm%3Dtd3") as page:
        page.wait_for_selector("text=No run meets these conditions")
        new = written(root / "td3-0", [1.0], algorithm="td3", finished=False)
        page.wait_for_selector("td.id >> text=td3-0")
        page.check("input[name=run]")
        record = {"step": 200, "metrics": {"evaluation/return": 321.5}, "timing": {}}
        with (new / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
        page.wait_for_selector("td >> text=321.5")
        # What the reader chose stays chosen.
        assert page.is_checked("input[name=run]")
        new.rename(root.parent / "td3-0")
        page.wait_for_selector("text=No run meets these conditions")


def test_chosen_runs_are_compared(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, "/runs?filter=id%3Dppo-*") as page:
        page.check("#choose-all")
        page.click("text=Compare 6 chosen")
        page.wait_for_selector(".plot canvas")
        assert page.locator("h1").text_content() == "Compare"
        page.click(".legend .key >> nth=0")
        assert page.locator(".legend .key >> nth=0").get_attribute("aria-pressed") == "false"


def test_the_theme_can_be_switched_and_is_remembered(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, "/run/runs/ppo-0") as page:
        page.click("#theme")
        page.reload()
        assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
        page.wait_for_selector(".plot canvas")


def test_a_run_that_is_removed_while_it_is_shown_is_one_sentence(
    browser: Browser, pages: ServedPages, root: Path
) -> None:
    gone = written(root / "sac-0", [1.0, 2.0], algorithm="sac")
    with pages.opened(browser, "/runs") as page:
        page.click("td.id >> text=sac-0")
        page.wait_for_selector(".plot canvas")
        gone.rename(root.parent / "sac-0")
        page.wait_for_selector("text=There is no run 'sac-0'")
        assert page.locator("h1").text_content() == "sac-0"


def test_hostile_names_do_nothing(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, "/runs") as page:
        for path in (
            "/runs",
            "/run/runs/hostile",
            "/run/runs/hostile?view=settings",
            "/run/runs/hostile?view=output",
            "/compare?filter=id%3D*",
            "/sweep/runs/search",
        ):
            page.goto(f"{pages.url}{path}")
            page.wait_for_load_state("load")
            assert (path, page.locator("main img").count(), page.title() == "owned") == (path, 0, False)

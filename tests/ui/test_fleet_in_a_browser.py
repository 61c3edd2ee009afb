"""A real server with three clients, watched and commanded in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.ui.fake_servers import AWAY, LEARNER, FakeSource, fake_fleet, reply
from tests.ui.serving import ServedPages, served_pages
from tests.ui.small_fleet import SmallFleet
from tests.ui.views import VIEWS, View, accessibility_problems, overflow, screenshot

from rl4sys.ui.settings import UiSettings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

_LEARNER_PAGE = "/fleet/learner?name=shared~cache"


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallFleet]:
    found = SmallFleet(tmp_path_factory.mktemp("fleet"))
    try:
        found.start()
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def pages(fleet: SmallFleet) -> Iterator[ServedPages]:
    with served_pages(UiSettings(servers=(fleet.server.address,), ask_seconds=0.2)) as found:
        yield found


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)
def test_both_pages_are_readable_and_accessible(
    browser: Browser, pages: ServedPages, tmp_path: Path, view: View
) -> None:
    for path, name in (("/fleet", "fleet"), (_LEARNER_PAGE, "learner")):
        with pages.opened(browser, path, view) as page:
            page.wait_for_selector(".curve canvas")
            assert overflow(page) == 0
            assert accessibility_problems(page) == []
            assert screenshot(page, tmp_path, name, view).stat().st_size > 10_000


def test_the_page_of_a_learner_shows_what_its_versions_led_to_and_where_it_continues_from(
    browser: Browser, pages: ServedPages
) -> None:
    with pages.opened(browser, _LEARNER_PAGE) as page:
        page.wait_for_selector("[data-key=checkpoints] tbody tr >> nth=1")
        outcomes = page.locator("[data-key=versions] tbody td:nth-child(2)").all_inner_texts()
        assert any(text.replace(",", "").isdigit() for text in outcomes)


@pytest.mark.parametrize("path", ["/fleet", _LEARNER_PAGE])
def test_a_page_is_light(browser: Browser, pages: ServedPages, path: str) -> None:
    with pages.opened(browser, path) as page:
        sizes: list[int] = []
        page.on("requestfinished", lambda request: sizes.append(request.sizes()["responseBodySize"]))
        page.goto(f"{pages.url}{path}")
        page.wait_for_selector(".curve canvas")
        assert len(sizes) <= 20
        assert sum(sizes) <= 300_000


def test_a_killed_client_has_left_on_the_open_page(browser: Browser, fleet: SmallFleet, pages: ServedPages) -> None:
    with pages.opened(browser, "/fleet") as page:
        page.wait_for_selector("text=All is well: 1 server, 1 learner, 3 connected clients")
        fleet.kill_client("node-2")
        page.wait_for_selector("tr.gone:has-text('node-2') >> text=left")
        page.wait_for_selector("text=2 connected clients (1 left within the hour)")
        fleet.start_client("node-2")
        page.wait_for_selector("text=All is well: 1 server, 1 learner, 3 connected clients")


def test_a_command_is_given_by_keyboard_and_the_page_shows_who_has_obeyed(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, "/fleet") as page:
        page.wait_for_selector("text=shared~cache")
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("() => document.activeElement.textContent") == "shared~cache":
                break
        page.keyboard.press("Enter")
        page.wait_for_url(f"**{_LEARNER_PAGE.partition('?')[0]}**")
        page.focus("input[name=command]")
        page.keyboard.press("Space")
        page.keyboard.press("Tab")
        page.keyboard.type("smoke <b>in</b> the rack")
        page.keyboard.press("Enter")
        page.wait_for_selector("text=Clients off, because “smoke <b>in</b> the rack”: done.")
        page.wait_for_function("() => document.querySelectorAll('[data-key=obedience] .good').length === 3")
        assert page.locator("section:has(h2:text('Audit')) >> text=smoke <b>in</b> the rack").count() == 1
        page.check("input[value=follow]")
        page.fill("#reason", "the rack is fine")
        page.click("text=Send the command")
        page.wait_for_selector("text=Clients follow again, because “the rack is fine”: done.")


def test_a_form_that_is_sent_twice_is_carried_out_once(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, _LEARNER_PAGE, may_go_wrong=True) as page:
        page.check("input[value=restart]")
        page.fill("#reason", "once")
        form = page.evaluate(
            "() => new URLSearchParams(new FormData(document.querySelector('form.commands'))).toString()"
        )
        send = """async (body) => (await fetch('/fleet/command', {
            method: 'POST', body: new URLSearchParams(body), redirect: 'manual'})).status"""
        assert page.evaluate(send, form) == 0  # a redirect, which is not followed
        assert page.evaluate(send, form) == 409


def test_a_final_command_needs_the_name_of_the_learner(browser: Browser, pages: ServedPages) -> None:
    with pages.opened(browser, _LEARNER_PAGE, may_go_wrong=True) as page:
        assert not page.is_visible("#confirmation")
        page.check("input[value=reset]")
        page.fill("#reason", "start over")
        page.fill("#confirmation", "shared~other")
        page.click("text=Send the command")
        page.wait_for_selector("text=type the name of the learner. Nothing was done.")


def test_an_update_keeps_the_focus_and_what_was_opened(browser: Browser) -> None:
    source = FakeSource(reply(learners=[LEARNER | {"frozen": True}]))
    with (
        served_pages(UiSettings(servers=("server-1:1",)), fake_fleet(source)) as pages,
        pages.opened(browser, "/fleet") as page,
    ):
        page.wait_for_selector(".curve canvas")
        page.click("summary")
        page.focus("tbody a")
        source.reply = reply(learners=[LEARNER | {"frozen": True, "version": 77}])
        page.wait_for_selector("td:text-is('77')")
        assert page.evaluate("() => document.activeElement.textContent") == "shared~cache"
        assert not page.evaluate("() => document.querySelector('details').open")
        assert page.locator(".curve canvas").count() == 4


def test_a_server_that_goes_away_and_comes_back_is_named_on_the_open_page(browser: Browser) -> None:
    source = FakeSource()
    with (
        served_pages(UiSettings(servers=("server-1:1",)), fake_fleet(source)) as pages,
        pages.opened(browser, "/fleet") as page,
    ):
        page.wait_for_selector("text=All is well")
        source.error = AWAY
        page.wait_for_selector("text=does not answer since")
        assert page.locator("text=shared~cache").count() > 0
        source.error = None
        page.wait_for_selector("text=All is well")


def test_a_page_that_has_lost_its_own_server_says_so(browser: Browser) -> None:
    with served_pages(UiSettings(servers=("server-1:1",)), fake_fleet(FakeSource())) as pages:
        window = pages.opened(browser, "/fleet", may_go_wrong=True)
        page = window.__enter__()
        page.wait_for_selector("text=All is well")
        assert not page.is_visible("#connection")
    page.wait_for_selector("text=This page has lost its own server")
    window.__exit__(None, None, None)

"""The tests in a browser notice what they look for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from tests.ui.serving import served
from tests.ui.views import PageWentWrong, View, accessibility_problems, opened, overflow

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

_WRONG = (
    '<!doctype html><html lang="en"><head><title>wrong</title><link rel="icon" href="data:,"></head><body>'
    '<img src="data:,"><div style="width: 2000px">wide</div><script>undefined_name()</script></body></html>'
)


@pytest.fixture(scope="module")
def wrong_page() -> Iterator[str]:
    with served(lambda port: Starlette(routes=[Route("/", lambda request: HTMLResponse(_WRONG))])) as port:
        yield f"http://127.0.0.1:{port}/"


def test_mistakes_of_a_page_are_found(browser: Browser, wrong_page: str) -> None:
    with opened(browser, wrong_page, View(390, "dark"), may_go_wrong=True) as page:
        assert any("image-alt" in line for line in accessibility_problems(page))
        assert overflow(page) > 1_000
        assert page.evaluate("() => matchMedia('(prefers-color-scheme: dark)').matches")


def test_an_error_of_a_script_is_found(browser: Browser, wrong_page: str) -> None:
    with pytest.raises(PageWentWrong, match="undefined_name"), opened(browser, wrong_page):
        pass

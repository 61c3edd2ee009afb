"""A page as people look at it: wide or narrow, light or dark, without mistakes that hide it from a screen reader."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class View(NamedTuple):
    """The window of a browser."""

    width: int
    scheme: str

    @property
    def name(self) -> str:
        """For file names."""
        return f"{self.width}-{self.scheme}"


VIEWS = tuple(View(width, scheme) for width in (1400, 390) for scheme in ("light", "dark"))
WIDE = View(1400, "light")


class PageWentWrong(AssertionError):
    """Something that a page must not do: an error of a script, a blocked resource, a request to another host."""


@contextmanager
def opened(
    browser: Browser, url: str, view: View = WIDE, *, may_go_wrong: bool = False, lands_at: str = ""
) -> Iterator[Page]:
    """A page in a new profile; raises `PageWentWrong` at the end if its scripts failed or it called another host."""
    context = browser.new_context(
        viewport={"width": view.width, "height": 900},
        color_scheme=view.scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    page = context.new_page()
    wrong: list[str] = []
    host = url.split("/")[2]
    page.on("pageerror", lambda error: wrong.append(f"script failed: {error}"))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: wrong.extend(_foreign(request.url, host)))
    try:
        page.goto(url)
        if lands_at:
            page.wait_for_url(lands_at)
        yield page
    finally:
        context.close()
    if wrong and not may_go_wrong:
        raise PageWentWrong("; ".join(wrong))


def accessibility_problems(page: Page) -> list[str]:
    """What axe-core finds serious or critical, one line for each element."""
    # The page's own policy forbids inline scripts; this one comes from the browser, not from the page.
    page.evaluate(_axe_source())
    found: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{violation['impact']} {violation['id']}: {node['html'][:200]} ({'; '.join(_messages(node))})"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def overflow(page: Page) -> int:
    """How many pixels the page is wider than its window; wide tables must scroll by themselves."""
    width: int = page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


def screenshot(page: Page, directory: Path, name: str, view: View) -> Path:
    """The whole page as a PNG file."""
    path = directory / f"{name}-{view.name}.png"
    page.screenshot(path=path, full_page=True)
    return path


@functools.cache
def _axe_source() -> str:
    import axe_playwright_python

    return (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()


def _messages(node: dict[str, Any]) -> list[str]:
    return [check["message"] for kind in ("any", "all", "none") for check in node[kind]]


def _foreign(url: str, host: str) -> list[str]:
    is_own = url.startswith(("data:", "blob:")) or url.split("/")[2] == host
    return [] if is_own else [f"asked another host: {url}"]

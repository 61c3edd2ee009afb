"""Apps and pages on a free port of this machine, in a thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import uvicorn
from starlette.types import ASGIApp
from tests.ui.views import WIDE, View, opened

from rl4sys.ui.app import build_app
from rl4sys.ui.browser_sessions import BrowserSessions
from rl4sys.ui.fleet import Fleet
from rl4sys.ui.page_address import PageAddress
from rl4sys.ui.security import LINK_TOKEN, Security
from rl4sys.ui.settings import UiSettings

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, Page


@contextmanager
def served(build: Callable[[int], ASGIApp]) -> Iterator[int]:
    """The port at which an app answers; it is built for that port."""
    with PageAddress("127.0.0.1:0").bind() as listening:
        port: int = listening.getsockname()[1]
        config = uvicorn.Config(build(port), log_level="warning", access_log=False, timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="page")
        thread.start()
        try:
            yield port
        finally:
            server.should_exit = True
            thread.join()


@dataclass(frozen=True)
class ServedPages:
    """The pages of `rl4sys ui`."""

    port: int
    sessions: BrowserSessions

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def opened(
        self, browser: Browser, path: str, view: View = WIDE, *, may_go_wrong: bool = False
    ) -> AbstractContextManager[Page]:
        """A page in a browser that is signed in with the link of this moment."""
        link = f"{self.url}{path}{'&' if '?' in path else '?'}{LINK_TOKEN}={self.sessions.link_token}"
        return opened(browser, link, view, may_go_wrong=may_go_wrong, lands_at=f"**{path}")


@contextmanager
def served_pages(settings: UiSettings, fleet: Fleet | None = None) -> Iterator[ServedPages]:
    """The pages, as `rl4sys ui` serves them."""
    sessions = BrowserSessions()
    with served(lambda port: Security(build_app(settings, fleet), sessions, PageAddress(), port)) as port:
        yield ServedPages(port, sessions)

"""Pages with and without a browser."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from starlette.testclient import TestClient
from tests.cli.commands import Here

from rl4sys.ui.app import build_app
from rl4sys.ui.browser_sessions import BrowserSessions
from rl4sys.ui.page_address import PageAddress
from rl4sys.ui.security import Security
from rl4sys.ui.settings import UiSettings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

Open = Callable[..., TestClient]
_PORT = 8265
_FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def missing(sentence: str) -> NoReturn:
    """Skip the tests of a browser; where the workflow installs one (`CI=true`), fail instead."""
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


# Not for the whole session: playwright leaves its event loop running in this thread, where other tests need their own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's chromium with an empty profile, one for all tests of this package."""
    executable = shutil.which("chromium")
    if executable is None:
        missing("chromium is missing; as root, tests/ui/packages.sh installs it")
    if importlib.util.find_spec("playwright") is None:
        missing("playwright is missing; it comes with the extra `dev`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=executable, args=list(_FLAGS))
        yield found
        found.close()


@pytest.fixture
def pages() -> Iterator[Open]:
    """Opens the pages of some directories of runs as a browser that is signed in, but without one."""
    with ExitStack() as stack:

        def open_pages(*roots: Path) -> TestClient:
            sessions = BrowserSessions()
            app = Security(build_app(UiSettings(runs=roots)), sessions, PageAddress(), _PORT)
            client = stack.enter_context(TestClient(app, base_url=f"http://127.0.0.1:{_PORT}"))
            client.get(f"/?token={sessions.link_token}")
            return client

        yield open_pages


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Commands, in this process and in the working directory of the test."""
    return Here(monkeypatch, capsys)

"""Every request that is not from a browser with a session on the page itself is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from rl4sys.ui.browser_sessions import BrowserSessions, WeakToken
from rl4sys.ui.page_address import PageAddress
from rl4sys.ui.security import Security, form_fields, form_token

_PORT = 8265
_PAGE = f"http://127.0.0.1:{_PORT}"
_TOKEN = "a-token-that-is-long-enough"


async def _form(request: Request) -> Response:
    return HTMLResponse(form_token(request, "/change"))


async def _change(request: Request) -> Response:
    return PlainTextResponse(f"changed: {form_fields(request)['reason']}")


class _Page:
    """An app of two routes behind the checks, and what its process knows."""

    def __init__(self, address: PageAddress | None = None, tokens: tuple[str, ...] = ()) -> None:
        routes = [Route("/form", _form), Route("/change", _change, methods=["POST"])]
        self.sessions, self.used_links = BrowserSessions(tokens), 0
        inner = Security(Starlette(routes=routes), self.sessions, address or PageAddress(), _PORT, self._count)
        self.browser = TestClient(inner, base_url=_PAGE, follow_redirects=False)

    def _count(self) -> None:
        self.used_links += 1

    def open(self) -> None:
        assert self.browser.get("/", params={"token": self.sessions.link_token}).status_code == 200

    def post(self, token: str, **headers: str) -> Response:
        given = {"origin": _PAGE} | headers
        fields = {"form_token": token, "reason": "why"}
        return self.browser.post("/change", data=fields, headers=given)  # type: ignore[return-value]


@pytest.fixture
def page() -> Iterator[_Page]:
    found = _Page()
    with found.browser:
        yield found


def test_without_a_session_there_is_one_sentence_and_nothing_else(page: _Page) -> None:
    answer = page.browser.get("/form")
    assert answer.status_code == 401
    assert "Open the link" in answer.text


def test_the_printed_link_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(page: _Page) -> None:
    answer = page.browser.get("/", params={"token": page.sessions.link_token})
    cookie = answer.headers["set-cookie"].lower()
    assert f"rl4sys-ui-{_PORT}=" in cookie
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert page.browser.get("/form").status_code == 200


def test_a_link_works_once(page: _Page) -> None:
    link = page.sessions.link_token
    page.open()
    page.browser.cookies.clear()
    assert page.browser.get("/", params={"token": link}).status_code == 403
    assert page.used_links == 1


def test_a_link_opens_no_other_host(page: _Page) -> None:
    answer = page.browser.get(f"{_PAGE}//elsewhere.example/", params={"token": page.sessions.link_token})
    assert 'url=/elsewhere.example/"' in answer.text


def test_a_link_leads_to_the_view_that_it_names(page: _Page) -> None:
    answer = page.browser.get("/form", params={"filter": "a&b", "token": page.sessions.link_token})
    assert 'url=/form?filter=a%26b"' in answer.text


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8265", "127.0.0.1:80", "127.0.0.1", ""])
def test_a_foreign_host_is_refused(page: _Page, host: str) -> None:
    page.open()
    assert page.browser.get("/form", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", f"https://127.0.0.1:{_PORT}", "http://127.0.0.1:1"])
def test_a_foreign_origin_is_refused(page: _Page, origin: str) -> None:
    page.open()
    token = page.browser.get("/form").text
    assert page.post(token, origin=origin).status_code == 403
    assert page.browser.get("/form", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_page_fetches_is_refused_and_a_link_is_not(page: _Page, site: str) -> None:
    page.open()
    fetched = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    assert page.browser.get("/form", headers=fetched).status_code == 403
    assert page.browser.get("/form", headers=fetched | {"sec-fetch-mode": "navigate"}).status_code == 200


def test_a_form_is_carried_out_once(page: _Page) -> None:
    page.open()
    token = page.browser.get("/form").text
    assert page.post(token).text == "changed: why"  # type: ignore[attr-defined]
    assert page.post(token).status_code == 409


def test_a_form_without_its_token_or_origin_is_refused(page: _Page) -> None:
    page.open()
    assert page.post("").status_code == 409
    answer = page.browser.post("/change", data={"form_token": page.browser.get("/form").text})
    assert answer.status_code == 403


def test_a_token_of_another_session_or_path_is_refused(page: _Page) -> None:
    page.open()
    token = page.browser.get("/form").text
    page.browser.cookies.clear()
    page.open()
    assert page.post(token).status_code == 409
    other = page.browser.get("/form").text
    headers = {"origin": _PAGE}
    assert page.browser.post("/form", data={"form_token": other}, headers=headers).status_code == 409


def test_only_short_forms_are_taken(page: _Page) -> None:
    page.open()
    headers = {"origin": _PAGE}
    assert page.browser.post("/change", json={}, headers=headers).status_code == 415
    assert page.browser.post("/change", data={"reason": "x" * 70_000}, headers=headers).status_code == 413
    assert page.browser.put("/change").status_code == 405


def test_every_answer_forbids_inline_code_frames_and_caches(page: _Page) -> None:
    page.open()
    for path in ("/form", "/nowhere"):
        headers = page.browser.get(path).headers
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_a_token_of_the_file_signs_in_and_another_does_not() -> None:
    page = _Page(tokens=(_TOKEN,))
    headers = {"origin": _PAGE}
    assert page.browser.post("/sign-in", data={"token": "wrong"}, headers=headers).status_code == 403
    shown = page.browser.get("/form", headers={"accept": "text/html"}).text
    assert re.search(r'action="/sign-in".*type="password"', shown)
    assert page.browser.post("/sign-in", data={"token": _TOKEN}, headers=headers).status_code == 303
    assert page.browser.get("/form").status_code == 200


def test_over_tls_the_cookie_is_sent_over_tls_only(tmp_path: Path) -> None:
    address = PageAddress(certificate=tmp_path / "a.pem", key=tmp_path / "a.key")
    page = _Page(address)
    page.browser.base_url = "https://127.0.0.1:8265"  # type: ignore[assignment]
    cookie = page.browser.get("/", params={"token": page.sessions.link_token}).headers["set-cookie"]
    assert cookie.startswith("__Host-rl4sys-ui-8265=")
    assert "Secure" in cookie


def test_a_token_that_could_be_guessed_is_refused() -> None:
    with pytest.raises(WeakToken, match="at least 16"):
        BrowserSessions(["short"])


def test_sessions_and_their_forms_are_bounded() -> None:
    sessions = BrowserSessions()
    first = sessions.open_with_link(sessions.link_token)
    assert first is not None
    oldest = sessions.form_token(first, "/change")
    for _ in range(256):
        sessions.form_token(first, "/change")
    assert not sessions.take_form(first, oldest, "/change")
    for _ in range(64):
        sessions.open_with_link(sessions.link_token)
    assert not sessions.has(first)

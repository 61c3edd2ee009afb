"""What every request must pass: known host, own origin, a session, and for changes a form that is sent once."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request, cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rl4sys.ui.browser_sessions import BrowserSessions
from rl4sys.ui.page_address import PageAddress

FORM_TOKEN = "form_token"
"""The field of a form that carries its token."""
LINK_TOKEN = "token"
"""The parameter of the printed link."""
SIGN_IN = "/sign-in"
_STATIC = "/static/"
_LONGEST_BODY = 64 << 10
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "media-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with it, browsers send forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Security:
    """ASGI middleware around the whole app."""

    def __init__(
        self,
        app: ASGIApp,
        sessions: BrowserSessions,
        address: PageAddress,
        port: int,
        link_used: Callable[[], None] = lambda: None,
    ) -> None:
        """`link_used` is called when a browser has used the printed link: the next one needs another."""
        self._app, self._sessions, self._link_used = app, sessions, link_used
        self._authorities = address.authorities(port)
        self._is_secure = address.certificate is not None
        # Browsers share cookies between the ports of a host.
        self._cookie = f"__Host-rl4sys-ui-{port}" if self._is_secure else f"rl4sys-ui-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with the session."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        answer = await self._checked(scope, receive)
        if answer is None:
            await self._app(scope, receive, _with_headers(send))
        else:
            await answer(scope, receive, _with_headers(send))

    async def _checked(self, scope: Scope, receive: Receive) -> Response | None:
        """What to answer instead of the app; None to pass the request on."""
        headers, path, method = Headers(scope=scope), scope["path"], scope["method"]
        host = headers.get("host", "").lower()
        if host not in self._authorities:
            return _refusal(421, "This is not a name of the page. Open the address that `rl4sys ui` printed.")
        if method not in ("GET", "HEAD", "POST"):
            return _refusal(405, "This page answers GET, HEAD and POST only.")
        if not self._is_own_origin(headers, host, method):
            return _refusal(403, "This request comes from another site. Open the page itself.")
        if path.startswith(_STATIC) and method != "POST":
            return None
        if path == SIGN_IN and method == "POST":
            return await self._sign_in(receive)
        session = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        has_session = self._sessions.has(session)
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if link := dict(query).get(LINK_TOKEN):
            rest = urlencode([pair for pair in query if pair[0] != LINK_TOKEN])
            return self._opened(path, rest, session if has_session else self._by_link(link))
        if path == SIGN_IN and has_session:
            return RedirectResponse("/", 303)
        if not has_session:
            return _sign_in_page(scope, takes_tokens=self._sessions.takes_tokens)
        scope["rl4sys.session"] = _SessionForms(self._sessions, session)
        return await self._checked_form(scope, receive, session) if method == "POST" else None

    def _is_own_origin(self, headers: Headers, host: str, method: str) -> bool:
        origin = headers.get("origin")
        if origin is None:
            # Browsers name the origin of every form; other programs need not send any. Links may come from anywhere:
            # the cookie does not come along. Pages on another port of this machine are "same-site", and others.
            is_near = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            return method != "POST" and (is_near or headers.get("sec-fetch-mode") == "navigate")
        parts = urlsplit(origin)
        return parts.scheme == ("https" if self._is_secure else "http") and parts.netloc.lower() == host

    def _by_link(self, link: str) -> str | None:
        session = self._sessions.open_with_link(link)
        if session is not None:
            self._link_used()
        return session

    def _opened(self, path: str, query: str, session: str | None) -> Response:
        if session is None:
            return _page(
                403,
                "This link has been used",
                "A link works once. The terminal of <code>rl4sys ui</code> shows a new one.",
            )
        # Not a redirect: a browser that came from another site would not send the cookie along with it.
        target = _link_to(path, query)
        answer = _page(
            200,
            "Opening the page",
            f'<a href="{target}">Continue</a>',
            f'<meta http-equiv="refresh" content="0; url={target}">',
        )
        return self._with_cookie(answer, session)

    async def _sign_in(self, receive: Receive) -> Response:
        fields = dict(parse_qsl((await _body(receive) or b"").decode("utf-8", "replace")))
        session = self._sessions.sign_in(fields.get("token", ""))
        if session is None:
            return _page(403, "Not signed in", f'This token is not known. <a href="{SIGN_IN}">Try again</a>')
        return self._with_cookie(RedirectResponse("/", 303), session)

    def _with_cookie(self, answer: Response, session: str) -> Response:
        answer.set_cookie(self._cookie, session, path="/", httponly=True, samesite="strict", secure=self._is_secure)
        return answer

    async def _checked_form(self, scope: Scope, receive: Receive, session: str) -> Response | None:
        kind = Headers(scope=scope).get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/x-www-form-urlencoded":
            return _refusal(415, "Only forms of this page can be sent to it.")
        body = await _body(receive)
        if body is None:
            return _refusal(413, f"A form may have {_LONGEST_BODY >> 10} KiB.")
        fields = dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))
        if not self._sessions.take_form(session, fields.pop(FORM_TOKEN, ""), scope["path"]):
            return _refusal(409, "This form was sent before, or is too old. Nothing was done. Reload the page.")
        scope["rl4sys.form"] = fields
        return None


class _SessionForms:
    """The session of a request, as pages use it."""

    __slots__ = ("_session", "_sessions")

    def __init__(self, sessions: BrowserSessions, session: str) -> None:
        self._sessions, self._session = sessions, session

    def form_token(self, path: str) -> str:
        """A token for a form that is sent to this path, once."""
        return self._sessions.form_token(self._session, path)


def form_token(request: Request, path: str) -> str:
    """A token for a form on this page, to be sent in the field `form_token` to this path, once."""
    token: str = request.scope["rl4sys.session"].form_token(path)
    return token


def form_fields(request: Request) -> Mapping[str, str]:
    """The fields of a form whose token was valid."""
    fields: Mapping[str, str] = request.scope["rl4sys.form"]
    return fields


async def _body(receive: Receive) -> bytes | None:
    """The body of a request; None if it is too long."""
    body: bytes = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _LONGEST_BODY:
            return None
        if message["type"] != "http.request" or not message.get("more_body", False):
            return body


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message["headers"])
            for name, value in _HEADERS.items():
                headers[name] = value
            headers.setdefault("cache-control", "no-store")
        await send(message)

    return sent


def _link_to(path: str, query: str = "") -> str:
    """A path as a link within this page: two slashes at its beginning would name another host."""
    return html.escape(quote("/" + path.lstrip("/")) + (f"?{query}" if query else ""), quote=True)


def _refusal(code: int, sentence: str) -> Response:
    return Response(f"{sentence}\n", code, media_type="text/plain")


def _sign_in_page(scope: Scope, *, takes_tokens: bool) -> Response:
    """For a browser without a session; everything else gets one sentence."""
    wanted = Headers(scope=scope).get("accept", "")
    if "text/html" not in wanted:
        return _refusal(401, "Open the link that `rl4sys ui` printed, or sign in.")
    again = "/" if scope["path"] == SIGN_IN else _link_to(scope["path"])
    form = (
        f'<form method="post" action="{SIGN_IN}"><label for="token">Token</label> '
        '<input id="token" name="token" type="password" autocomplete="current-password" required> '
        '<button type="submit">Sign in</button></form>'
        if takes_tokens
        else ""
    )
    return _page(
        401,
        "Sign in",
        "<p>Open the link that <code>rl4sys ui</code> printed in its terminal. It works once.</p>"
        f'<p>If you are signed in already, <a href="{again}">continue</a>.</p>{form}',
    )


def _page(code: int, title: str, body: str, head: str = "") -> HTMLResponse:
    return HTMLResponse(
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · RL4Sys</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<link rel="icon" href="{_STATIC}icon.svg"><link rel="stylesheet" href="{_STATIC}ui.css">{head}</head>'
        f"<body><main><h1>{title}</h1>{body}</main></body></html>",
        code,
    )

"""Who may use the page: links that work once, sessions of browsers, and tokens of forms that work once."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Iterable

_MOST_SESSIONS = 64
_MOST_FORMS = 256
"""Of one session: forms that are shown and not yet sent; the oldest can no longer be sent."""
SHORTEST_TOKEN = 16
"""Characters of a token that people sign in with."""


class WeakToken(ValueError):
    """A token that could be guessed."""


class BrowserSessions:
    """The sessions of one process. They end with it."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        """`tokens`: what people may sign in with, besides the link that is printed."""
        self._tokens = tuple(tokens)
        for token in self._tokens:
            if len(token) < SHORTEST_TOKEN:
                raise WeakToken(
                    f"A token of the page has {len(token)} characters; at least {SHORTEST_TOKEN} are needed. "
                    "Make one with: rl4sys token new --role viewer"
                )
        self._link = secrets.token_urlsafe(32)
        self._sessions: OrderedDict[str, OrderedDict[str, str]] = OrderedDict()
        """The paths that the forms of each session may be sent to, by their tokens."""

    @property
    def link_token(self) -> str:
        """What opens the next session, once."""
        return self._link

    @property
    def takes_tokens(self) -> bool:
        """Whether people can sign in with a token."""
        return bool(self._tokens)

    def open_with_link(self, link: str) -> str | None:
        """A session for the token of a link, which is then worth nothing; None for any other token."""
        if not _equal(link, self._link):
            return None
        self._link = secrets.token_urlsafe(32)
        return self._open()

    def sign_in(self, token: str) -> str | None:
        """A session for a token of the token file; None for any other token."""
        # Every token is compared, so that the time says nothing about them.
        found = [_equal(token, known) for known in self._tokens]
        return self._open() if any(found) else None

    def has(self, session: str) -> bool:
        """Whether this is a session; one that is used is dropped last."""
        if session not in self._sessions:
            return False
        self._sessions.move_to_end(session)
        return True

    def form_token(self, session: str, path: str) -> str:
        """A token for one form, which may be sent once, to this path, within this session."""
        token = secrets.token_urlsafe(24)
        forms = self._sessions[session]
        forms[token] = path
        if len(forms) > _MOST_FORMS:
            forms.popitem(last=False)
        return token

    def take_form(self, session: str, token: str, path: str) -> bool:
        """Whether a form may be carried out. Its token is worth nothing afterwards."""
        return self._sessions[session].pop(token, None) == path

    def _open(self) -> str:
        session = secrets.token_urlsafe(32)
        self._sessions[session] = OrderedDict()
        if len(self._sessions) > _MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session


def _equal(given: str, known: str) -> bool:
    return secrets.compare_digest(given.encode(), known.encode())

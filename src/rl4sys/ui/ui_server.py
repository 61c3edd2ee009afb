"""Serves the pages until the process is stopped."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from rl4sys.ui.app import build_app
from rl4sys.ui.browser_sessions import BrowserSessions
from rl4sys.ui.live_updates import LiveStreams
from rl4sys.ui.security import LINK_TOKEN, Security
from rl4sys.ui.settings import UiSettings

_LONGEST_REQUEST = 256 * 1024
"""Bytes of the address and headers of a request: a comparison names all of its runs."""
_END_SECONDS = 1
"""Seconds that open pages are given when the process is stopped."""


def serve(settings: UiSettings, announce: Callable[[str], None]) -> None:
    """Serve the pages; `announce` gets a link that opens them once, and another one when it was used."""
    address = settings.address
    address.require_certificate()
    sessions = BrowserSessions(address.tokens())
    with address.bind() as listening:
        port = listening.getsockname()[1]

        def announce_link() -> None:
            announce(f"{address.url(port)}/?{LINK_TOKEN}={sessions.link_token}")

        app = build_app(settings)
        config = uvicorn.Config(
            Security(app, sessions, address, port, announce_link),
            log_level="warning",
            access_log=False,
            server_header=False,
            ws="none",
            http="h11",
            loop="asyncio",
            lifespan="on",
            h11_max_incomplete_event_size=_LONGEST_REQUEST,
            timeout_graceful_shutdown=_END_SECONDS,
            ssl_certfile=address.certificate,
            ssl_keyfile=address.key,
        )
        announce_link()
        _Server(config, app.state.streams).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends the streams of open pages before it waits for connections."""

    def __init__(self, config: uvicorn.Config, streams: LiveStreams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop listening, and wait a moment for what is being answered."""
        self._streams.close()
        await super().shutdown(sockets)

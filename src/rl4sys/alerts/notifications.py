"""Notifications through apprise: e-mail, chat, a webhook."""

from __future__ import annotations

import functools
import importlib.util
import logging
import os
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from rl4sys.config import ConfigError

_log = logging.getLogger(__name__)

_ENVIRONMENT = "env:"
_INTERVAL = 60.0
"""Seconds between two messages of one alert. Messages in between are counted, and reported with the next one."""


class NotificationsUnavailable(ConfigError):
    """Notifications cannot be sent: a package or an address is missing."""


class Notifications:
    """Sends in a thread of its own: training waits for no network. Failures are logged."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sent: dict[str, float] = {}
        self._held: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rl4sys-messages")

    def send(self, title: str, text: str, addresses: Iterable[str]) -> bool:
        """Send a message soon; false if the last one of this title is too fresh."""
        now = self._clock()
        if now - self._sent.get(title, -_INTERVAL) < _INTERVAL:
            self._held[title] = self._held.get(title, 0) + 1
            return False
        self._sent[title] = now
        held = self._held.pop(title, 0)
        body = f"{text}\n({held} more since the last message)" if held else text
        sending = self._thread.submit(_deliver, _apprise()(), title, body, tuple(addresses))
        sending.add_done_callback(functools.partial(_log_failure, title))
        return True

    def close(self) -> None:
        """Wait until what is on its way has been sent, or has failed: apprise gives up after some seconds."""
        self._thread.shutdown(wait=True)


def require_notifications(addresses: Iterable[str]) -> None:
    """Refuse unusable addresses before anything is started. The error shows no secret."""
    if importlib.util.find_spec("apprise") is None:
        raise NotificationsUnavailable(
            "alerts: 'notify' needs the package 'apprise'. Install it with: pip install 'rl4sys[alerts]', "
            "or take 'notify' out of the alerts."
        )
    sender = _apprise()
    for place, address in enumerate(addresses):
        if not sender.instantiate(_resolved(address)):
            shown = address if address.startswith(_ENVIRONMENT) else f"{address.partition('://')[0]}://…"
            raise NotificationsUnavailable(
                f"alerts: notify address {place + 1} ({shown}) is none that apprise knows; write it like "
                f"mailto://user:password@example.org or json://localhost:8080/hook."
            )


def _deliver(sender: Any, title: str, body: str, addresses: tuple[str, ...]) -> None:
    for address in addresses:
        sender.add(_resolved(address))
    if not sender.notify(title=title, body=body):
        raise RuntimeError("at least one address did not take it")


def _log_failure(title: str, future: Future[None]) -> None:
    error = future.exception()
    if error is not None:
        _log.warning("The message '%s' could not be sent: %s", title, error)


def _resolved(address: str) -> str:
    if not address.startswith(_ENVIRONMENT):
        return address
    name = address.removeprefix(_ENVIRONMENT)
    value = os.environ.get(name)
    if not value:
        raise NotificationsUnavailable(
            f"alerts: notify names the environment variable {name}, which is not set; set it."
        )
    return value


@functools.cache
def _apprise() -> Any:
    import apprise

    # Its own log shows addresses, and so perhaps passwords.
    logging.getLogger("apprise").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        # It loads its parts when they are first asked for, and some warn of what is none of our business.
        warnings.simplefilter("ignore", DeprecationWarning)
        apprise.Apprise.instantiate("json://localhost")
    return apprise.Apprise

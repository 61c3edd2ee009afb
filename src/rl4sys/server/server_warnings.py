"""What an operator should know although the server serves."""

from __future__ import annotations

import logging
import threading

_log = logging.getLogger(__name__)


class ServerWarnings:
    """Warnings by topic. Each is logged when it comes up, and is part of the status until it is gone."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._texts: dict[str, str] = {}

    def set(self, topic: str, text: str) -> None:
        """There is a problem with a topic."""
        with self._lock:
            is_new = self._texts.get(topic) != text
            self._texts[topic] = text
        if is_new:
            _log.error("%s", text)

    def clear(self, topic: str) -> None:
        """The problem is gone, if there was one."""
        with self._lock:
            text = self._texts.pop(topic, None)
        if text is not None:
            _log.info("This is repaired: %s", text)

    def all(self) -> list[str]:
        """All of them, by topic."""
        with self._lock:
            return [self._texts[topic] for topic in sorted(self._texts)]

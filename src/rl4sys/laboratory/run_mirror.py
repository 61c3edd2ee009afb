"""Keeps a run in storage while it trains, so that another machine can continue it."""

from __future__ import annotations

import logging
import time
from pathlib import Path

from rl4sys.experiments import Run, RunDirectory
from rl4sys.storage import NotStored, StorageUnavailable, StoredRun, open_storage

_log = logging.getLogger(__name__)

_PAUSES = (1.0, 5.0, 15.0)
"""Seconds between attempts to store a run that has ended."""


class RunMirror:
    """The copy of one run at a URL."""

    def __init__(self, url: str) -> None:
        self._stored = StoredRun(open_storage(url))
        self._url = url

    def fetch(self, parent: Path) -> RunDirectory | None:
        """The run as it was stored, copied below a directory; None if nothing was stored yet."""
        contents = self._stored.contents()
        if contents is None or not contents.files:
            return None
        return RunDirectory(self._stored.fetch(parent))

    def attach(self, run: Run) -> None:
        """Begin an attempt, which ends all earlier ones, and store the run after each checkpoint from now on."""
        attempt = self._stored.begin(run.directory.path.name)
        _log.info("Attempt %d, stored in %s", attempt, self._url)
        run.after_save(lambda: self._store(run.directory.path))

    def conclude(self, run: Path) -> None:
        """Store the run as it ended; an error if that fails repeatedly."""
        for pause in (*_PAUSES, None):
            try:
                self._stored.store(run)
                return
            except OSError as error:
                if isinstance(error, NotStored) or pause is None:
                    raise StorageUnavailable(
                        f"{run} could not be stored in {self._url}: {error}. It is complete here; store it later with: "
                        f"rl4sys push {run} {self._url}"
                    ) from error
                time.sleep(pause)

    def _store(self, run: Path) -> None:
        """Store what is new. If the storage is away, training continues and the next checkpoint tries again."""
        try:
            self._stored.store(run)
        except OSError as error:
            _log.warning("The checkpoint could not be stored in %s: %s. The next one will be.", self._url, error)

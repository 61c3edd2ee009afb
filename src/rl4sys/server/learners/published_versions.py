"""The versions of a learner that clients may have: archived first, then announced, while events arrive."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from rl4sys.failpoints import failpoint
from rl4sys.server.learners.version_archive import PolicyDescription, VersionArchive
from rl4sys.weights import Patch, Version, VersionGone, make_patch

_log = logging.getLogger(__name__)

_KEPT_PATCHES = 32
_KEPT_VERSIONS = 16
_KEPT_BYTES = 256 << 20
"""Older versions only make patches smaller; at least the newest two are kept."""
_RETRY_SECONDS = 1.0


class PublishedVersions:
    """Versions by number, perhaps with gaps: those that were superseded before they could be archived are skipped.

    A thread archives them one after the other, and ends when there is nothing to do. Any thread may call any method.
    """

    def __init__(self, learner: str, archive: VersionArchive, announce: Callable[[], None]) -> None:
        self._learner, self._archive, self._announce = learner, archive, announce
        self._versions = _recent(archive.versions)
        """Replaced, never changed, so that readers need no lock."""
        self.problem = ""
        """Why a version cannot be archived at present, and so is not announced; empty if all is well."""
        self._changed = threading.Condition()
        self._pending: Version | None = None
        self._thread: threading.Thread | None = None
        self._closing = False
        self._patching = threading.Lock()
        self._patches: OrderedDict[tuple[int | None, int], Patch] = OrderedDict()

    @property
    def description(self) -> PolicyDescription | None:
        """What the versions belong to; None before anything is known."""
        return self._archive.description

    @property
    def newest(self) -> Version | None:
        """The newest version that was announced, or may be at any time; None before there is any."""
        return self._versions[-1] if self._versions else None

    @property
    def highest(self) -> int:
        """The greatest number that is known, announced or not; -1 before there is any."""
        with self._changed:
            pending = self._pending.number if self._pending is not None else -1
        return max(self._archive.highest, pending)

    def describe(self, description: PolicyDescription) -> None:
        """What later versions belong to."""
        with self._changed:
            self._archive.describe(description)

    def publish(self, number: int, blob: bytes) -> None:
        """Archive and then announce a version, unless a newer one follows before that. Never waits for the disk."""
        with self._changed:
            self._pending = Version(number, np.frombuffer(blob, "<f4"))
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(
                    target=self._archive_pending, name=f"versions of {self._learner}", daemon=True
                )
                self._thread.start()

    def find(self, number: int) -> Version | None:
        """The version of this number, announced or not, if it is kept."""
        pending = self._pending
        if pending is not None and pending.number == number:
            return pending
        return next((version for version in self._versions if version.number == number), None)

    def patch(self, have: int | None, want: int | None) -> Patch:
        """The patch from one version to another, cached because many clients of a learner ask for the same one."""
        versions = {version.number: version for version in self._versions}
        target = self.newest if want is None else versions.get(want)
        if target is None:
            raise VersionGone(
                f"The learner '{self._learner}' has no version yet."
                if want is None
                else f"Version {want} is not kept; the learner '{self._learner}' has "
                f"{', '.join(map(str, versions)) or 'none'}."
            )
        key = (have, target.number)
        with self._patching:
            patch = self._patches.get(key)
            if patch is None:
                patch = make_patch(versions.get(have) if have is not None else None, target)
                self._keep_patch(key, patch)
            return patch

    def close(self, timeout: float) -> None:
        """Archive what is pending, if the disk allows."""
        with self._changed:
            self._closing = True
            thread = self._thread
            self._changed.notify_all()
        if thread is not None:
            thread.join(timeout)

    def _archive_pending(self) -> None:
        while (version := self._next()) is not None:
            began = time.monotonic()
            try:
                self._store(version)
            except OSError as error:
                if not self._note_failure(version, error):
                    return
                continue
            with self._changed:
                if self._pending is version:
                    self._pending = None
            if self.problem:
                self.problem = ""
                _log.info("Versions of learner %s are announced again.", self._learner, extra=self._named)
            self._announce()
            # Half of the time at most: the disk also serves acknowledgements.
            self._pause(time.monotonic() - began)

    def _next(self) -> Version | None:
        with self._changed:
            if self._pending is None:
                self._thread = None
            return self._pending

    def _store(self, version: Version) -> None:
        before = self._versions
        failpoint("before version store")
        patch = self._archive.write(version)
        with self._patching:
            self._keep_patch((patch.base, version.number), patch)
        self._versions = _recent((*before, version))
        failpoint("after version store")

    def _note_failure(self, version: Version, error: OSError) -> bool:
        """Say that a version is not announced, and wait; false if the server is closing and there is no later."""
        is_new = not self.problem
        self.problem = (
            f"Version {version.number} is not announced to clients, because it cannot be archived: {error}. They keep "
            f"version {self._versions[-1].number if self._versions else 'none'}. Free space on the disk of the server."
        )
        if is_new:
            _log.error("Learner %s: %s", self._learner, self.problem, extra=self._named)
            self._announce()
        with self._changed:
            if self._closing:
                self._thread = None
                return False
        self._pause(_RETRY_SECONDS)
        return True

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._closing, seconds)

    def _keep_patch(self, key: tuple[int | None, int], patch: Patch) -> None:
        self._patches[key] = patch
        if len(self._patches) > _KEPT_PATCHES:
            self._patches.popitem(last=False)

    @property
    def _named(self) -> dict[str, str]:
        return {"learner": self._learner}


def _recent(versions: tuple[Version, ...]) -> tuple[Version, ...]:
    """The newest versions that are kept in memory."""
    most = max(2, _KEPT_BYTES // max(1, versions[-1].blob.nbytes)) if versions else _KEPT_VERSIONS
    return versions[-min(most, _KEPT_VERSIONS) :]

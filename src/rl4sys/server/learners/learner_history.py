"""The history of a learner: its lineage, the versions that were published, and which clients hold another lineage."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from rl4sys.records import Durability, Files
from rl4sys.server.learners.learner_setup import SetupDamaged
from rl4sys.server.learners.lineage import Lineage, OtherLineages
from rl4sys.server.learners.published_versions import PublishedVersions
from rl4sys.server.learners.version_archive import VersionArchive

_log = logging.getLogger(__name__)

_ARCHIVE_SECONDS = 2.0
"""How long closing waits for the last version to be archived."""


class LearnerHistory:
    """Versions only increase within a lineage: what a worker folds again is compared, and not published again."""

    def __init__(
        self, learner: str, directory: Path, durability: Durability, files: Files, announce: Callable[[], None]
    ) -> None:
        self.lineage = Lineage.read(directory)
        self.other_lineages = OtherLineages()
        self.is_unreachable = False
        """Whether checkpoints and log do not reach the newest version that was published."""
        self._learner, self._directory = learner, directory
        self._durability, self._files, self._announce = durability, files, announce
        self._reached: int | None = None
        """The version that the worker has reached; None before it is ready."""
        self._mismatch = ""
        self.versions = self._open_versions()

    @property
    def problems(self) -> list[str]:
        """What an operator should know at present."""
        found = (self.versions.problem, self._mismatch, self._lineage_problem())
        return [problem for problem in found if problem]

    @property
    def refolded_version(self) -> int | None:
        """The version that the worker has reached while it folds its log again; None when it has caught up."""
        reached = self._reached
        return reached if reached is not None and reached < self.versions.highest else None

    def take(self, number: int, blob: bytes) -> None:
        """Publish a version of the worker, or compare it with the published one that it repeats."""
        self._reached = number
        published, highest = self.versions.find(number), self.versions.highest
        if number > highest or (number == highest and published is None):
            self.versions.publish(number, blob)
        elif published is not None and hashlib.sha256(blob).digest() != published.sha256 and not self._mismatch:
            self._mismatch = (
                f"Version {number}, folded again from the log, has other weights than the published one. Clients keep "
                f"the published one; later versions follow from the folded one. The log or a checkpoint was changed, "
                f"or the device, the number of threads or the version of torch is another."
            )
            _log.error("Learner %s: %s", self._learner, self._mismatch, extra={"learner": self._learner})

    def loss(self) -> str | None:
        """Why the worker must stop, if it has folded the whole log and not reached what was published; the first time.

        Clients have versions that would be numbered again.
        """
        reached = self.refolded_version
        if reached is None or self.is_unreachable:
            return None
        self.is_unreachable = True
        newest = self.versions.newest
        return (
            f"Version {self.versions.highest} was published, but checkpoints and log of '{self._learner}' end at "
            f"version {reached}: a part of the log is lost. Version {newest.number if newest is not None else 0} is "
            f"served, experience is stored, and nothing is learned. Restore a backup of {self._directory}, or continue "
            f"from version {reached} with: rl4sys learners accept {self._learner}"
        )

    def note_client(self, client: str, lineage: str, version: int | None, known_version: int) -> None:
        """A client acts with this version of this lineage; one that this learner does not continue is reported."""
        is_ahead = lineage == self.lineage.id and version is not None and version > known_version
        if not lineage or (self.lineage.continues(lineage) and not is_ahead):
            self.other_lineages.forget(client)
        elif self.other_lineages.note(client, lineage, version or 0):
            _log.error("%s", self._lineage_problem(), extra={"learner": self._learner, "client": client})

    def replace_others(self) -> None:
        """Let clients of other lineages follow this one."""
        lineage = self.lineage.accepting(held.lineage for held in self.other_lineages.holders())
        lineage.write(self._directory)
        self.lineage = lineage

    def begin_lineage(self, others: Iterable[str]) -> None:
        """Begin a new lineage, without versions; clients of the present one, and of others, follow."""
        lineage = self.lineage.successor(others)
        self.close()
        lineage.write(self._directory)
        self.lineage, self.is_unreachable, self._mismatch, self._reached = lineage, False, "", None
        self.versions = self._open_versions()

    def close(self) -> None:
        """Archive the last version, if the disk allows."""
        self.versions.close(_ARCHIVE_SECONDS)

    def _open_versions(self) -> PublishedVersions:
        archive = VersionArchive(self._directory / "versions", self.lineage.id, self._durability, self._files)
        if archive.other_lineage and not self.lineage.id:
            raise SetupDamaged(
                f"{self._directory} has versions of lineage {archive.other_lineage}, but its lineage.json is missing. "
                f"Restore that from a backup, or move {archive.directory} away to start over."
            )
        return PublishedVersions(self._learner, archive, self._announce)

    def _lineage_problem(self) -> str:
        holders = self.other_lineages.holders()
        if not holders:
            return ""
        held = ", ".join(
            f"version {each.version} of lineage {each.lineage} ({each.clients} clients)" for each in holders[:3]
        )
        newest = self.versions.newest
        return (
            f"Clients act with versions that learner '{self._learner}' (lineage {self.lineage.id or 'unknown'}, "
            f"version {newest.number if newest is not None else 0}) does not continue: {held}. They keep them, and "
            f"record nothing. Restore a backup of {self._directory}, or let them follow this learner with: "
            f"rl4sys learners accept {self._learner}"
        )

"""Experience in the log of one learner, as another one can start from it: decided by something else than its policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rl4sys.experience import DecidedBy, Segment
from rl4sys.policy import BoxAction, PolicySpec
from rl4sys.records import Durability, RecordReader
from rl4sys.records.files import DiskFiles
from rl4sys.records.frames import first_numbers
from rl4sys.server.learners.learner_commands import LearnerCommand, decode_record
from rl4sys.server.learners.learner_setup import LearnerSetup, is_learner
from rl4sys.server.learners.lineage import Lineage
from rl4sys.server.learners.stored_segments import StoredSegment
from rl4sys.server.learners.version_archive import VersionArchive
from rl4sys.wire import SegmentFormat, decode_checked_segment, encode_segment
from rl4sys.wire.generated import operations_pb2

_NAME_LETTERS = 64
"""Of the learner's name in an origin; its lineage says the rest."""


class UnusableExperience(ValueError):
    """Recorded experience cannot be read, or does not fit a learner."""


class RecordedLog(NamedTuple):
    """The log of a learner that is not served, or of one that is: reading changes nothing."""

    directory: Path
    setup: LearnerSetup
    policy: PolicySpec
    """The policy that explores, in the newest version."""
    form: SegmentFormat
    lineage: str

    @classmethod
    def open(cls, directory: Path) -> RecordedLog:
        """The log in the directory of a learner, or of a backup of it."""
        if not is_learner(directory):
            raise UnusableExperience(
                f"{directory} is not the directory of a learner. Name one, such as DATA/learners/NAME of a server, or "
                f"a backup of it."
            )
        lineage = Lineage.read(directory).id
        archive = VersionArchive(directory / "versions", lineage, Durability.OS, DiskFiles())
        if archive.description is None:
            raise UnusableExperience(
                f"{directory} has no archive of versions, so the format of its log is unknown. Serve it once with this "
                f"version of RL4Sys."
            )
        policy = PolicySpec.from_json(archive.description.explore)
        return cls(directory, LearnerSetup.read(directory), policy, SegmentFormat.of(policy), lineage)

    def segments(self, policy: PolicySpec) -> Iterator[operations_pb2.RecordedSegment]:
        """All that the log still has, in its order, in the format of a learner with this policy."""
        form = SegmentFormat.of(policy)
        self._require_same(form)
        for entry, segment in self.stored():
            yield operations_pb2.RecordedSegment(
                origin=f"{entry.client} of {self.setup.learner[:_NAME_LETTERS]} {self.lineage}".rstrip(),
                epoch=entry.epoch,
                sequence=entry.sequence,
                segment=encode_segment(form, _converted(segment, form, policy)),
            )

    def stored(self) -> Iterator[tuple[StoredSegment, Segment]]:
        """All that the log still has, in its order: who sent it, and the segment as it was recorded."""
        log = self.directory / "log"
        reader = RecordReader(log, min(first_numbers(DiskFiles().names(log)), default=0))
        try:
            while records := reader.read():
                for record in records:
                    stored = decode_record(record.payload)
                    if isinstance(stored, LearnerCommand):
                        continue
                    for entry in stored.alone():
                        yield entry, decode_checked_segment(self.form, entry.segment, client=entry.client)
        finally:
            reader.close()

    def _require_same(self, form: SegmentFormat) -> None:
        own, wanted = self.form.schema, form.schema
        if own.observation != wanted.observation or (own.action, self.form.choices) != (wanted.action, form.choices):
            raise UnusableExperience(
                f"The experience in {self.directory} has observations {', '.join(map(str, own.observation))} and "
                f"actions {own.action}; the learner has {', '.join(map(str, wanted.observation))} and {wanted.action}. "
                f"They must be equal."
            )


def _converted(segment: Segment, form: SegmentFormat, policy: PolicySpec) -> Segment:
    """The segment without what its own policy noted, with actions as the system received them."""
    action, schema = segment.action, form.schema
    if isinstance(policy.action, BoxAction):
        action = np.clip(action, *np.array([policy.action.low, policy.action.high], np.float32))
    return replace(
        segment,
        policy_version=0,
        action=action,
        extras={spec.name: np.zeros((segment.steps, *spec.shape), spec.dtype) for spec in schema.extras},
        carry={spec.name: np.zeros(spec.shape, spec.dtype) for spec in schema.carry},
        decided_by=DecidedBy.FALLBACK,
    )

"""What the log forgets when its old files are removed, and nobody may forget: which segments were ever stored."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl4sys.atomic_files import replace_file
from rl4sys.failpoints import failpoint
from rl4sys.records import Deduplication, RecordsDamaged

_NAME = "stored.json"
_FORMAT = 1


@dataclass(slots=True)
class ClientCounts:
    """What one client has brought to one learner."""

    segments: int = 0
    steps: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Stored:
    """A fold over the log, like a learner: names and counts of all records below `position`."""

    position: int = 0
    deduplication: Deduplication = field(default_factory=Deduplication)
    clients: dict[str, ClientCounts] = field(default_factory=dict)

    def note(self, number: int, client: str, epoch: int, sequence: int, steps: int, length: int) -> None:
        """Take in the record `number`, which must be the next one; earlier ones are known already."""
        if number < self.position:
            return
        self.position = number + 1
        if self.deduplication.add(client, epoch, sequence):
            counts = self.clients.setdefault(client, ClientCounts())
            counts.segments += 1
            counts.steps += steps
            counts.bytes += length

    def encode(self) -> bytes:
        """What `write` puts on the disk."""
        body = {
            "format": _FORMAT,
            "position": self.position,
            "deduplication": self.deduplication.state(),
            "clients": {name: [counts.segments, counts.steps, counts.bytes] for name, counts in self.clients.items()},
        }
        return json.dumps({"sha256": _seal(body), "body": body}).encode()

    @staticmethod
    def write(directory: Path, encoded: bytes) -> None:
        """Put it on the disk, wholly or not at all."""
        failpoint("before stored names")
        replace_file(directory / _NAME, encoded)
        failpoint("after stored names")

    @classmethod
    def read(cls, directory: Path, first: int) -> Stored:
        """The snapshot, needed where the log begins with the record `first` instead of 0."""
        try:
            sealed = json.loads((directory / _NAME).read_bytes())
            body = sealed["body"]
            if sealed["sha256"] != _seal(body) or body["format"] != _FORMAT:
                raise ValueError("its SHA-256 or its format is another")
            stored = cls(body["position"])
            stored.deduplication.restore(body["deduplication"])
            stored.clients = {name: ClientCounts(*counts) for name, counts in body["clients"].items()}
        except (OSError, ValueError, KeyError, TypeError) as error:
            if first == 0:
                # The log still has everything that the snapshot would say.
                return cls()
            raise RecordsDamaged(
                f"{directory / _NAME} cannot be read ({error}), and the log before record {first} is gone. Without it "
                f"segments could be trained twice. Bring the file back from a copy."
            ) from error
        if stored.position < first:
            raise RecordsDamaged(
                f"{directory / _NAME} ends at record {stored.position}, and the log begins with {first}. Bring back "
                f"the newer file from a copy."
            )
        return stored


def _seal(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()

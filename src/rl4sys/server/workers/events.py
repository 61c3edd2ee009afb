"""What a learner's worker tells its host, within a process or through a pipe: a line of JSON, then raw bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, BinaryIO, TypeAlias


@dataclass(frozen=True, slots=True)
class Ready:
    """The learner is made or restored; what follows was learned after `position`."""

    policy: str
    """The exploring policy, as `PolicySpec.to_json` writes it."""
    config: str
    """The config with all defaults, in canonical form."""
    noise_seed: int
    version: int
    position: int
    blob: bytes = b""
    device: str = ""
    """What it computes on."""
    checkpoint_age: float | None = None
    """Seconds since the checkpoint was written that it was restored from; None without one."""


@dataclass(frozen=True, slots=True)
class Published:
    """A version."""

    version: int
    blob: bytes = b""


@dataclass(frozen=True, slots=True)
class LearnerProgress:
    """Every record below `position` has been folded in."""

    position: int
    steps: int
    updates: int
    episodes: int
    mean_return: float | None
    unused: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Saved:
    """There is a checkpoint; no kept one needs records below `oldest`."""

    position: int
    oldest: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The learner cannot be made from its setup, however often one tries."""

    problem: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker ended, and not because it was asked to."""

    problem: str
    position: int = 0


@dataclass(frozen=True, slots=True)
class Stopped:
    """The worker ended as it was asked to, after a checkpoint."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The answer to question `id`: the canonical config, or what is wrong with it."""

    id: int
    config: str
    problem: str


@dataclass(frozen=True, slots=True)
class Logged:
    """A line for the host's log, with the time (in seconds since 1970) and the level of its making."""

    time: float
    level: int
    logger: str
    message: str
    exception: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


Event: TypeAlias = Ready | Published | LearnerProgress | Saved | Refused | Failed | Stopped | Resolved | Logged

_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (Ready, Published, LearnerProgress, Saved, Refused, Failed, Stopped, Resolved, Logged)
}


def write_event(file: BinaryIO, event: Event) -> None:
    """Send an event, weights after its line."""
    values = {part.name: getattr(event, part.name) for part in fields(event) if part.name != "blob"}
    blob = event.blob if isinstance(event, Ready | Published) else b""
    file.write(json.dumps([type(event).__name__, len(blob), values]).encode() + b"\n" + blob)
    file.flush()


def read_event(file: BinaryIO) -> Event | None:
    """The next event; None when the sender is gone, also within an event."""
    line = file.readline()
    if not line.endswith(b"\n"):
        return None
    kind, length, values = json.loads(line)
    event = _KINDS[kind](**values)
    if not isinstance(event, Ready | Published):
        return event
    blob = file.read(length)
    return replace(event, blob=blob) if len(blob) == length else None

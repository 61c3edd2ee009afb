"""Events that a worker sends to its host, within a process or through a pipe: a line of JSON, then raw bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, BinaryIO, NamedTuple, TypeAlias


class VersionOutcome(NamedTuple):
    """The episodes whose last step was decided with one version."""

    version: int
    episodes: int
    mean_return: float
    """Of the last hundred of them."""


@dataclass(frozen=True, slots=True)
class LearnerProgress:
    """How far the learner is: every record below `position` is folded."""

    position: int
    steps: int
    updates: int
    episodes: int
    mean_return: float | None
    unused: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    outcomes: tuple[VersionOutcome, ...] = ()
    """Returns by version, the newest version last."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The learner is created or restored, and has folded every record below `position`."""

    policy: str
    """The exploring policy, as `PolicySpec.to_json` writes it."""
    config: str
    """The config with all defaults, in canonical form."""
    noise_seed: int
    version: int
    position: int
    blob: bytes = b""
    device: str = ""
    """The torch device."""
    checkpoint_age: float | None = None
    """Age in seconds of the checkpoint that it was restored from; None without one."""
    progress: LearnerProgress | None = None
    """What it had learned before this start."""
    settings: str = ""
    """The config with the changes of operators, in canonical form; empty if there were none."""
    is_frozen: bool = False
    """Whether an operator ordered it not to learn."""
    exploit: str = ""
    """The exploiting policy over the same weights."""


@dataclass(frozen=True, slots=True)
class Commanded:
    """The command of an operator was folded: every record below `position` is."""

    position: int
    problem: str
    """Why it was refused; empty if it was carried out."""
    settings: str
    """The config afterwards, in canonical form."""
    is_frozen: bool
    version: int
    """The newest version afterwards."""


@dataclass(frozen=True, slots=True)
class Sized:
    """What the learner takes, sent before it is created."""

    weights: int
    replay_bytes: int
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Published:
    """A new version of the weights."""

    version: int
    blob: bytes = b""
    steps: int = 0
    """Steps that it was learned from."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint was written; no checkpoint needs records below `oldest`."""

    position: int
    oldest: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The learner cannot be created from its setup; trying again would not help."""

    problem: str
    is_limit: bool = False
    """Whether it would exceed a limit of the server."""


@dataclass(frozen=True, slots=True)
class Held:
    """The data of the learner are damaged or incomplete, and an operator has to decide."""

    problem: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The worker ended because of an error."""

    problem: str
    position: int = 0
    is_own: bool = False
    """Whether the learner's own code raised it, so that it will probably happen again at the same position."""


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
    """A line for the host's log, with its time (in seconds since 1970) and level."""

    time: float
    level: int
    logger: str
    message: str
    exception: str = ""
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FilePart:
    """A part of a file that a worker on another machine has written, for its directory at the host."""

    name: str
    """The path below the directory of the learner."""
    offset: int
    is_last: bool
    """Whether the file ends with it."""
    blob: bytes = b""


LastEvent: TypeAlias = Refused | Held | Failed | Stopped
"""What the last event of a worker is."""
Event: TypeAlias = (
    Ready
    | Commanded
    | Sized
    | Published
    | LearnerProgress
    | Saved
    | Refused
    | Held
    | Failed
    | Stopped
    | Resolved
    | Logged
    | FilePart
)

_KINDS: dict[str, type[Event]] = {
    kind.__name__: kind
    for kind in (
        Ready,
        Commanded,
        Sized,
        Published,
        LearnerProgress,
        Saved,
        Refused,
        Held,
        Failed,
        Stopped,
        Resolved,
        Logged,
        FilePart,
    )
}
_WithBlob: TypeAlias = Ready | Published | FilePart


def write_event(file: BinaryIO, event: Event) -> None:
    """Write an event: its line, then its bytes."""
    values = {part.name: getattr(event, part.name) for part in fields(event) if part.name != "blob"}
    blob = event.blob if isinstance(event, _WithBlob) else b""
    file.write(json.dumps([type(event).__name__, len(blob), values], default=asdict).encode() + b"\n" + blob)
    file.flush()


def read_event(file: BinaryIO) -> Event | None:
    """The next event; None if the sender is gone, even in the middle of an event."""
    line = file.readline()
    if not line.endswith(b"\n"):
        return None
    kind, length, values = json.loads(line)
    if isinstance(progress := values.get("progress"), dict):
        values["progress"] = _progress(progress)
    event = _progress(values) if kind == LearnerProgress.__name__ else _KINDS[kind](**values)
    if not isinstance(event, _WithBlob):
        return event
    blob = file.read(length)
    return replace(event, blob=blob) if len(blob) == length else None


def _progress(values: dict[str, Any]) -> LearnerProgress:
    return LearnerProgress(**values | {"outcomes": tuple(VersionOutcome(*each) for each in values["outcomes"])})

"""Limits of learners: what each may take, and what all of them may take together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from pydantic import Field

from rl4sys.config import Config, ConfigError


class LearnerLimits(Config):
    """What one new learner may take. Learners that exist already are kept when a limit is lowered."""

    weights: int = Field(20_000_000, ge=1)
    """Weights of its actor and its critics together."""
    memory_bytes: int = Field(8 << 30, ge=1)
    """Memory that its worker process may allocate besides torch itself (RLIMIT_DATA). One that needs more fails, with a
    message that names this limit."""
    replay_bytes: int = Field(8 << 30, ge=1)
    """Bytes of a full replay buffer, in memory or on the disk."""
    threads: int | None = Field(None, ge=1)
    """Threads that it may compute with; null for as many as the server has cores."""
    update_epochs: int = Field(1_000, ge=1)
    """Passes over one batch (`algorithm.epochs`)."""
    gradient_steps: float = Field(100.0, gt=0)
    """Gradient steps for each step of experience."""
    checkpoint_steps: int = Field(10, ge=1)
    """The fewest steps between two checkpoints (`checkpoint_frequency`)."""


class TotalLimits(Config):
    """What several learners may take together."""

    weights: int | None = Field(None, ge=1)
    """Weights of their actors and critics; null for no limit."""
    memory_bytes: int | None = Field(None, ge=1)
    """Memory of their processes now, when another one is created; null for no limit."""
    replay_bytes: int | None = Field(None, ge=1)
    """Bytes of their replay buffers when these are full; null for no limit."""


class LearnerCost(NamedTuple):
    """What a learner takes."""

    weights: int = 0
    """Of actor and critics."""
    replay_bytes: int = 0
    """Of a full replay buffer, in memory or on the disk."""
    memory_bytes: int = 0
    """An estimate, without what importing torch takes."""


class LimitExceeded(ConfigError):
    """A learner would exceed a limit; the message names the limit and its key."""


class Limit(NamedTuple):
    """The most of something, and the key of the server's config that says so."""

    most: float
    key: str

    def require(self, got: float, what: str, advice: str) -> None:
        """Raise `LimitExceeded` for more than the limit."""
        if got > self.most:
            raise LimitExceeded(
                f"{what} {_formatted(got)}; {self.key} of this server allows {_formatted(self.most)}. {advice}"
            )


def _formatted(number: float) -> str:
    return f"{number:,.0f}" if number >= 1_000 or number == int(number) else f"{number:g}"


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What a worker is given besides the directory of its learner."""

    plugins: tuple[str, ...] = ()
    """Python files and modules to load."""
    limits: Mapping[str, Limit] = field(default_factory=dict)
    """Limits by the names of `LearnerLimits`; what is missing is not limited."""
    memory: Limit | None = None
    """What the process may allocate."""
    checkpoint_seconds: float | None = None
    """How long progress may be without a checkpoint; None for any time."""

    def to_json(self) -> dict[str, Any]:
        """Values for `from_json`, in another process."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> WorkerOptions:
        """Read back what `to_json` wrote."""
        limits = {name: Limit(*limit) for name, limit in values["limits"].items()}
        memory = values["memory"]
        memory_limit = None if memory is None else Limit(*memory)
        return cls(tuple(values["plugins"]), limits, memory_limit, values["checkpoint_seconds"])


NO_OPTIONS = WorkerOptions()
"""No plug-ins and no limits."""

"""How a training service is set up."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rl4sys.records import Durability, Files
from rl4sys.server.limits import ServiceLimits
from rl4sys.server.offers import Offers
from rl4sys.server.workers import WorkerKind


class ImpossibleSetup(ValueError):
    """The options contradict each other, or are not safe."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What a service needs to know besides its data directory."""

    workers: WorkerKind = "processes"
    durability: Durability = Durability.FSYNC
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    offers: Offers = field(default_factory=Offers)
    """Experiments by name; each is tried before the service starts."""
    plugins: tuple[str, ...] = ()
    """Python files, by whole paths, and modules that workers load; they are tried before the service starts, too."""
    restart_seconds: float = 0.5
    """The delay before a failed worker is started again; it doubles with each failure in vain."""

    files: Files | None = None
    """Where logs live; None for the disk (or memory, by the durability). A simulation brings its own."""

    def __post_init__(self) -> None:
        if self.durability is Durability.MEMORY and self.workers == "processes":
            raise ImpossibleSetup(
                "durability=memory keeps the log in this process, where workers of another one cannot read it. "
                "Choose workers=threads, or durability=os."
            )


DEFAULT_DATA = Path("rl4sys-data")
"""Where a server keeps its learners if nobody says otherwise."""

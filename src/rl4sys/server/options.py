"""How a training service is set up, and the limits it enforces."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pydantic import Field

from rl4sys.config import Config
from rl4sys.records import Durability, Files
from rl4sys.server.alert_config import DEFAULT_ALERTS, ServerAlertConfig
from rl4sys.server.process_part import ProcessPart
from rl4sys.server.service.offered_experiments import OfferedExperiments
from rl4sys.server.workers.learner_limits import LearnerLimits, TotalLimits
from rl4sys.server.workers.ray_bridge import RayPlace
from rl4sys.server.workers.worker import WorkerKind
from rl4sys.wire.message_sizes import MESSAGE_BYTES, MIN_MESSAGE_BYTES, SEGMENT_STEPS

DEFAULT_DATA = Path("rl4sys-data")
"""The default data directory of a server."""


class ImpossibleSetup(ValueError):
    """The options contradict each other, or are not safe."""


class Rates(Config):
    """How fast experience may arrive. Segments that are sent again count again."""

    steps_per_second: float | None = Field(None, gt=0)
    """Steps of pushed segments; null for no limit."""
    bytes_per_second: float | None = Field(None, gt=0)
    """Bytes of pushed segments; null for no limit."""


class ServiceLimits(Config):
    """Limits of a server. A higher number costs more memory, disk or time, and refuses less."""

    max_message_bytes: int = Field(MESSAGE_BYTES, ge=MIN_MESSAGE_BYTES)
    """Bytes of one message, in either direction."""
    max_segment_steps: int = Field(SEGMENT_STEPS, ge=1)
    """Steps of one segment."""
    max_push_segments: int = Field(1_024, ge=1)
    """Segments of one push."""
    max_pack_segments: int = Field(1_024, ge=0)
    """Short segments that a client may send as one pack, which counts as one segment of a push; 0 for none."""
    max_outstanding_segments: int = Field(4_096, ge=1)
    """Segments that a client may have sent without an answer."""
    inbox_bytes: int = Field(256 << 20, ge=1)
    """Bytes in the log of one learner that it has not yet learned from."""
    inbox_segments: int = Field(200_000, ge=1)
    """The same in segments, of which a pack counts as one."""
    client_bytes: int = Field(128 << 20, ge=1)
    """The same for one client: less than `inbox_bytes`, so that no client fills a shared learner alone."""
    disk_reserve_bytes: int = Field(256 << 20, ge=0)
    """Bytes of the disk that are kept free (at most a twentieth of it), so that checkpoints can still be written. With
    less, nothing is acknowledged, and what was learned is removed from the logs."""
    max_epochs: int = Field(65_536, ge=1)
    """Epochs (starts) of one client that a learner remembers, permanently. After that the client needs another name."""
    max_learners: int = Field(256, ge=1)
    """Learners of the whole server. Each takes a process and its memory."""
    max_learners_per_token: int = Field(128, ge=1)
    """Learners that one token may create."""
    max_starting: int | None = Field(None, ge=1)
    """Learners that are created or restored at once, while the others wait; null for one per core."""
    max_waiting_joins: int = Field(8, ge=1)
    """Clients that may wait for a learner to start, each with a thread of the server; others must try again."""
    max_sessions: int = Field(16_384, ge=1)
    """Sessions of the whole server; the least recently used is dropped, and its client joins again."""
    max_sessions_per_token: int = Field(8_192, ge=1)
    """Sessions of one token; its own least recently used is dropped."""
    max_watchers: int = Field(4_096, ge=1)
    """Clients that may watch for new versions at once."""
    max_watchers_per_token: int = Field(2_048, ge=1)
    """The same for one token."""
    max_act_rows: int = Field(4_096, ge=1)
    """Decisions of one Act call."""
    parameters_bytes: int = Field(64 << 10, ge=1)
    """Bytes of the algorithm parameters in a join request."""
    join_seconds: float = Field(60.0, gt=0)
    """How long Join waits for a learner to be created or restored."""
    unclaimed_seconds: float = Field(60.0, gt=0)
    """How long a new learner is kept if the client that asked for it is gone before the answer."""
    checkpoint_seconds: float = Field(60.0, gt=0)
    """How long the progress of a learner may be without a checkpoint, besides its `checkpoint_frequency` in steps. A
    higher number writes less, and takes longer to catch up after a crash."""
    sleep_seconds: float | None = Field(900.0, gt=0)
    """A learner that has learned everything, and that nothing arrives for during this time, is saved and its process
    ends; the next push or command starts it again. Its versions are served meanwhile. Null for never."""
    expire_seconds: float | None = Field(None, gt=0)
    """A learner that no client has used for this long is moved to `deleted` in the data directory, as `rl4sys learners
    delete` does; 2592000 is 30 days. Null for never."""
    commit_seconds: float = Field(30.0, gt=0)
    """How long Push waits for the disk."""
    report_seconds: float = Field(5.0, ge=0)
    """How often clients report their health, which also renews their leases; 0 for never."""
    max_reports_per_second: float = Field(500.0, gt=0)
    """Reports of all clients together: with more sessions, each is asked to report less often."""
    retry_ms: int = Field(200, ge=1)
    """The retry delay that clients are asked to keep when something is full, in milliseconds."""
    per_learner: LearnerLimits = LearnerLimits()
    """What one learner may take."""
    per_token: TotalLimits = TotalLimits()
    """What the learners that one token created may take together."""
    total: TotalLimits = TotalLimits()
    """What all learners of the server may take together."""
    client_rates: Rates = Rates()
    """Rates of each client, over all learners it trains."""
    token_rates: Rates = Rates()
    """Rates of each token, over all its clients; its line in the token file may override them."""


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """What a service needs besides its data directory."""

    workers: WorkerKind = "processes"
    durability: Durability = Durability.FSYNC
    limits: ServiceLimits = field(default_factory=ServiceLimits)
    offers: OfferedExperiments = field(default_factory=OfferedExperiments)
    """Experiments by name; each is checked before the service starts."""
    plugins: tuple[str, ...] = ()
    """Python files, by absolute paths, and modules that workers load; checked before the service starts, too."""
    alerts: tuple[ServerAlertConfig, ...] = DEFAULT_ALERTS
    """What the server watches for, besides what its status always reports."""
    restart_seconds: float = 0.5
    """The delay before a failed worker is restarted; it doubles with each failure without progress."""
    files: Files | None = None
    """Where logs are stored; None for the disk (or memory, depending on `durability`). A simulation passes its own."""
    part: ProcessPart = field(default_factory=ProcessPart)
    """Which of several processes this is."""
    ray: RayPlace = field(default_factory=RayPlace)
    """Where workers on Ray run."""

    def __post_init__(self) -> None:
        if self.durability is Durability.MEMORY and self.workers != "threads":
            raise ImpossibleSetup(
                "durability=memory keeps the log in this process, where worker processes cannot read it. "
                "Choose workers=threads, or durability=os."
            )
        if self.ray.address is not None and self.workers != "ray":
            raise ImpossibleSetup(f"--address {self.ray.address} is for workers on Ray. Give --workers ray, too.")
        if (self.ray.address or "").startswith("http"):
            raise ImpossibleSetup(
                f"--address {self.ray.address} is that of a dashboard. A server joins the cluster itself: give auto, "
                "or HOST:6379, the port of its head."
            )

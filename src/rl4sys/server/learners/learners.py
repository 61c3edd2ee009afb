"""All learners of a server: found in its data directory, or created when a client asks for one."""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rl4sys.atomic_files import make_directory, sync_directory
from rl4sys.file_lock import FileLock
from rl4sys.records import Durability, LogBroken, LogFull, RecordsDamaged
from rl4sys.server.call_errors import exhausted, unavailable
from rl4sys.server.divided_data import require_undivided
from rl4sys.server.learners.claims import Claims, is_unclaimed, mark_unclaimed
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.deleted_learners import finish_interrupted, purge, set_aside, successor_place, take_place
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.interrupted_restore import require_no_restore
from rl4sys.server.learners.learner_budget import LearnerBudget
from rl4sys.server.learners.learner_setup import LearnerSetup, SetupDamaged, is_learner
from rl4sys.server.learners.lineage import Lineage
from rl4sys.server.learners.operator_orders import ClientOrder
from rl4sys.server.learners.storage_watch import StorageWatch
from rl4sys.server.learners.worker_starts import StartQueue
from rl4sys.server.options import ImpossibleSetup, ServiceOptions
from rl4sys.server.workers.fork_server import ForkServer
from rl4sys.server.workers.ray_bridge import RayBridge, RayUnfit
from rl4sys.server.workers.worker import WorkerStarter
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code

_log = logging.getLogger(__name__)

_STORAGE_RETRY_MS = 1_000
_REMOVAL_RETRY_MS = 1_000
_REMOVAL_SECONDS = 2.0
_END_SECONDS = 10.0
"""How long a worker may take to save before its learner is deleted or replaced."""


class Learners:
    """Learners by name, each in a directory of that name. Those that exist are resumed at the start."""

    def __init__(
        self,
        data: Path | None,
        options: ServiceOptions,
        clock: Callable[[], float],
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._options, self._clock, self._wall_clock = options, clock, wall_clock
        self._start_queue = StartQueue(options.limits.max_starting)
        self._starter = _worker_starter(options)
        self._budget = LearnerBudget(options)
        self.join_slots = threading.BoundedSemaphore(options.limits.max_waiting_joins)
        """Held by joins that wait until a learner has started."""
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if data is None or options.durability is Durability.MEMORY:
            # The log ends with the process, so checkpoints must not outlive it.
            self._temporary = tempfile.TemporaryDirectory(prefix="rl4sys-")
            data = Path(self._temporary.name)
        self.data = data
        self._directory = data / "learners"
        # Observations of live systems may be confidential.
        make_directory(data, mode=0o700)
        require_undivided(data)
        self._lock_file = _hold(data / "lock")
        make_directory(self._directory)
        self.storage = StorageWatch(data, options.limits.disk_reserve_bytes, clock)
        self._lock = threading.Lock()
        self._ordering = threading.Lock()
        """Held while an order is given, or a learner takes the place of another together with its orders."""
        self._learners: dict[str, HostedLearner] = {}
        self._claims = Claims()
        self._removing: set[str] = set()
        self.problems: dict[str, str] = {}
        """Learners that could not be opened, and why; they do not affect the others."""
        finish_interrupted(data)
        for directory in sorted(self._directory.iterdir()):
            if is_unclaimed(directory):
                # No client was ever told about it: the server ended while it was being created.
                shutil.rmtree(directory, ignore_errors=True)
            elif is_learner(directory):
                self._resume(directory)
            elif (directory / "log").is_dir() or (directory / "checkpoints").is_dir():
                self.problems[directory.name] = (
                    f"{directory} holds a log or checkpoints, but its setup.json is missing. Restore that from a "
                    f"backup, or move the directory away."
                )

    def use(self, options: ServiceOptions) -> None:
        """Use changed limits from now on, for learners that exist as well."""
        self._options = options
        self._budget.use(options)
        for learner in self.all():
            learner.inbox.limits = options.limits

    @property
    def durability(self) -> Durability:
        """What an acknowledgement survives."""
        return self._options.durability

    def all(self) -> list[HostedLearner]:
        """Every learner, by name."""
        with self._lock:
            return [self._learners[name] for name in sorted(self._learners)]

    def find(self, name: str) -> HostedLearner | None:
        """The learner of this name."""
        with self._lock:
            return self._learners.get(name)

    def joining(self, name: str) -> JoinUnderway:
        """A join of this learner: if it made the learner and is not answered, nothing is left of it."""
        return JoinUnderway(self, name)

    def find_or_make(self, setup: LearnerSetup) -> HostedLearner:
        """The learner with the name of the setup; a new one, not claimed yet, if there is none."""
        with self._lock:
            known = self._learners.get(setup.learner)
            if known is not None:
                return known
            if setup.learner in self._removing:
                raise unavailable(
                    f"An earlier learner '{setup.learner}' is being removed. Join again.",
                    retry_after_ms=_REMOVAL_RETRY_MS,
                )
            self._require_quota(setup.owner)
            self._require_storage(setup.learner)
            try:
                learner = self._host(self._create(setup))
                self._claims.made(setup.learner)
                return learner
            except (OSError, LogFull, LogBroken) as error:
                raise unavailable(
                    f"The learner '{setup.learner}' cannot be stored: {error}. Free space on the disk of the server.",
                    FailureReason.STORAGE,
                    _STORAGE_RETRY_MS,
                ) from error

    def give_order(self, name: str, mode: str, reason: str, ordered_by: str) -> ClientOrder:
        """Order what the clients of a learner have to do. A learner that is being replaced passes the order on."""
        with self._ordering:
            learner = self.find(name)
            if learner is None:
                raise CallFailed(Code.NOT_FOUND, f"There is no learner '{name}'.")
            return learner.give_order(mode, reason, ordered_by)

    def start_over(self, learner: HostedLearner) -> tuple[HostedLearner, Path]:
        """Replace a learner by a new one with the same setup and orders; returns it, and where the old one is.

        Its lineage replaces that of the old one, so that clients follow. Call `leave` on the old one first.
        """
        name, lineage = learner.name, learner.lineage.successor()
        learner.close(_END_SECONDS)
        with self._ordering, self._lock:
            place = successor_place(self.data, name)
            lineage.write(place)
            learner.orders.copy_to(place)
            learner.setup.write(place)
            aside = set_aside(self.data, name, self._wall_clock())
            return self._host(take_place(self.data, place)), aside

    def discard(self, learner: HostedLearner, *, is_purged: bool) -> Path | None:
        """Remove a learner; returns where its files are, or None if they were deleted. Call `leave` on it first."""
        with self._lock:
            self._learners.pop(learner.name, None)
            self._claims.forget(learner.name)
            self._budget.forget(learner.name)
            self._removing.add(learner.name)
        try:
            learner.close(_END_SECONDS)
            return self._take_away(learner.name, is_purged=is_purged)
        finally:
            with self._lock:
                self._removing.discard(learner.name)

    def discard_unopened(self, name: str, *, is_purged: bool) -> Path | None:
        """Remove a learner that could not be opened; as `discard`."""
        aside = self._take_away(name, is_purged=is_purged)
        self.problems.pop(name, None)
        return aside

    def reopen(self, name: str) -> None:
        """Try again to open a learner that could not be opened; `problems` has the reason if it still cannot."""
        with self._lock:
            self.problems.pop(name, None)
            self._resume(self._directory / name)

    def add(self, setup: LearnerSetup, fill: Callable[[Path], None]) -> HostedLearner:
        """Host another learner; `fill` writes everything but its setup and its lineage into a directory.

        It has to be claimed, as one that is made for a join.
        """
        name = setup.learner
        place = successor_place(self.data, name)
        try:
            self._options.part.require_own(name)
            with self._lock:
                if name in self._learners or name in self.problems or name in self._removing:
                    raise CallFailed(Code.FAILED_PRECONDITION, f"There is a learner '{name}' already. Choose another.")
                self._require_quota(setup.owner)
                self._require_storage(name)
            mark_unclaimed(place)
            fill(place)
            Lineage.fresh().write(place)
            setup.write(place)
            with self._lock:
                if (self._directory / name).exists():
                    raise CallFailed(Code.FAILED_PRECONDITION, f"There is a learner '{name}' already. Choose another.")
                learner = self._host(take_place(self.data, place))
                self._claims.made(name)
                return learner
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _take_away(self, name: str, *, is_purged: bool) -> Path | None:
        aside = set_aside(self.data, name, self._wall_clock())
        if not is_purged:
            return aside
        purge(aside)
        return None

    def tidy(self) -> None:
        """Remove learners that no client claimed in time; called every now and then."""
        with self._lock:
            abandoned = self._claims.abandoned(self._clock() - self._options.limits.unclaimed_seconds)
        for name in abandoned:
            _log.info("Learner %s is removed: no client waited for it.", name, extra={"learner": name})
            self._remove(name)

    def let_sleep(self) -> None:
        """End the workers of learners that are idle; called every second."""
        seconds = self._options.limits.sleep_seconds
        if seconds is not None:
            for learner in self.all():
                learner.sleep_if_idle(seconds)

    def check_storage(self) -> None:
        """Look at the disk; called every second."""
        self.storage.check(self.all())

    def _enter_join(self, name: str) -> None:
        with self._lock:
            self._claims.enter(name)

    def _leave_join(self, name: str, error: BaseException | None) -> None:
        with self._lock:
            is_refused = self._claims.leave(name, error, self._clock())
        if is_refused:
            self._remove(name)

    def _claim(self, name: str) -> None:
        with self._lock:
            self._claims.claim(name, self._directory / name)

    def _remove(self, name: str) -> None:
        """Remove a learner that no client knows: its process and its directory."""
        with self._lock:
            learner = self._learners.pop(name, None)
            self._claims.forget(name)
            self._budget.forget(name)
            if learner is None:
                return
            self._removing.add(name)
        try:
            learner.close(_REMOVAL_SECONDS)
            shutil.rmtree(self._directory / name, ignore_errors=True)
        finally:
            with self._lock:
                self._removing.discard(name)

    def close(self, timeout: float) -> None:
        """End all workers at once, and release the directory."""
        learners = self.all()
        for learner in learners:
            learner.begin_closing()
        deadline = self._clock() + timeout
        for learner in learners:
            try:
                learner.close(max(0.0, deadline - self._clock()))
            except (OSError, LogBroken, LogFull) as error:
                # Acknowledged records are safe, and the other learners still have to be closed.
                _log.warning("Learner %s could not be closed properly: %s", learner.name, error)
        self._starter.kill()
        self._lock_file.release()
        if self._temporary is not None:
            self._temporary.cleanup()

    def _require_quota(self, owner: str) -> None:
        limits = self._options.limits
        owned = sum(learner.setup.owner == owner for learner in self._learners.values()) if owner else 0
        for whose, count, most in (
            ("The server has", len(self._learners), limits.max_learners),
            ("This token has created", owned, limits.max_learners_per_token),
        ):
            if count >= most:
                raise exhausted(
                    FailureReason.QUOTA,
                    f"{whose} {count} learners, and no more are allowed. Share one by policy_id, or remove some.",
                    60_000,
                )
        self._budget.require_room(
            owner,
            [(learner.setup.owner, learner.process) for learner in self._learners.values()],
            # A push may wake those that sleep at any time.
            sum(each.condition in (Condition.STARTING, Condition.SLEEPING) for each in self._learners.values()),
        )

    def _require_storage(self, name: str) -> None:
        if self.storage.problem:
            raise unavailable(
                f"The learner '{name}' cannot be stored: {self.storage.problem}",
                FailureReason.STORAGE,
                _STORAGE_RETRY_MS,
            )

    def _create(self, setup: LearnerSetup) -> Path:
        directory = self._directory / setup.learner
        # Without a setup and a log it is what a crash left of a learner that was never used.
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        mark_unclaimed(directory)
        # The setup last: with it the learner exists.
        Lineage.fresh().write(directory)
        setup.write(directory)
        sync_directory(self._directory)
        _log.info("Learner %s is created: %s.", setup.learner, setup.algorithm, extra={"learner": setup.learner})
        return directory

    def _resume(self, directory: Path) -> None:
        try:
            self._host(directory)
        except (SetupDamaged, RecordsDamaged) as error:
            _log.error("Learner %s cannot be resumed: %s", directory.name, error, extra={"learner": directory.name})
            self.problems[directory.name] = str(error)
        except Exception as error:  # one damaged learner must not stop the others
            _log.exception("Learner %s cannot be resumed.", directory.name)
            self.problems[directory.name] = f"{type(error).__name__}: {error}"

    def _host(self, directory: Path) -> HostedLearner:
        learner = HostedLearner(directory, self._options, self._clock, self._start_queue, self._starter, self._budget)
        self._learners[learner.name] = learner
        return learner


class JoinUnderway:
    """A join between the request and its answer, as a context manager."""

    def __init__(self, learners: Learners, name: str) -> None:
        self._learners, self._name = learners, name

    def claim(self) -> None:
        """The client learns of the learner now."""
        self._learners._claim(self._name)

    def __enter__(self) -> JoinUnderway:
        self._learners._enter_join(self._name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._learners._leave_join(self._name, error)


def _worker_starter(options: ServiceOptions) -> WorkerStarter:
    if options.workers != "ray":
        return ForkServer()
    bridge = RayBridge(options.ray)
    try:
        bridge.require_cluster()
    except RayUnfit as error:
        raise ImpossibleSetup(str(error)) from error
    return bridge


def _hold(path: Path) -> FileLock:
    lock = FileLock.try_acquire(path, create=0o600)
    if lock is None:
        raise ImpossibleSetup(f"{path.parent} is served by another process. End that one, or choose another --data.")
    try:
        require_no_restore(path.parent)
    except ImpossibleSetup:
        lock.release()
        raise
    return lock

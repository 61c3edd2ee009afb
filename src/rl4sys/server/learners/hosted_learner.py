"""One learner as the service sees it: its inbox, its worker, its versions and its condition."""

from __future__ import annotations

import enum
import itertools
import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.failpoints import failpoint
from rl4sys.policy import PolicySpec
from rl4sys.server.learners.inbox import Inbox
from rl4sys.server.learners.learner_budget import LearnerBudget
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.operator_orders import ClientOrder, OperatorOrders
from rl4sys.server.learners.worker_starts import RestartBackoff, StartQueue
from rl4sys.server.options import ServiceOptions
from rl4sys.server.workers.events import (
    Event,
    Failed,
    Held,
    LearnerProgress,
    Published,
    Ready,
    Refused,
    Resolved,
    Saved,
    Sized,
    Stopped,
)
from rl4sys.server.workers.fork_server import ForkServer
from rl4sys.server.workers.learner_limits import LearnerCost
from rl4sys.server.workers.worker import ProcessWorker, ThreadWorker, Worker
from rl4sys.weights import ModelStore, Patch, VersionGone
from rl4sys.wire import SegmentFormat

_log = logging.getLogger(__name__)

_KEPT_PATCHES = 32


class Condition(enum.Enum):
    """The condition of a learner."""

    STARTING = enum.auto()
    RUNNING = enum.auto()
    REFUSED = enum.auto()
    FAILED = enum.auto()
    HELD = enum.auto()
    """Its data are damaged or incomplete, and an operator has to decide."""
    STOPPED = enum.auto()


class HostedLearner:
    """Keeps a worker running over a log. Workers are replaced after failures; inbox, policy and versions stay."""

    def __init__(
        self,
        directory: Path,
        options: ServiceOptions,
        clock: Callable[[], float],
        start_queue: StartQueue,
        fork_server: ForkServer,
        budget: LearnerBudget,
    ) -> None:
        self.setup = LearnerSetup.read(directory)
        self.orders = OperatorOrders(directory)
        self.inbox = Inbox(directory, options.limits, options.durability, self._nudge, clock, options.files)
        self.condition = Condition.STARTING
        self.problem = ""
        """The cause of the last failure; empty if there was none."""
        self.is_over_limit = False
        """Whether it was refused because of a limit."""
        self.restarts = RestartBackoff(first_seconds=options.restart_seconds)
        self.progress: LearnerProgress | None = None
        self.saved_at: float | None = None
        self.config = ""
        """The config in canonical form, once the worker was ready."""
        self.device = ""
        """The torch device of the worker, once it was ready."""
        self.noise_seed = 0
        self.policy: PolicySpec | None = None
        self.form: SegmentFormat | None = None
        self.store: ModelStore | None = None
        self._directory, self._workers, self._clock = directory, options.workers, clock
        self._budget, self._fork_server = budget, fork_server
        self._changed = threading.Condition()
        self._listeners: dict[int, Callable[[], None]] = {}
        self._listener_ids = itertools.count()
        self._closing = False
        self._patching = threading.Lock()
        self._patches: OrderedDict[tuple[int | None, int], Patch] = OrderedDict()
        self._timer: threading.Timer | None = None
        self._worker: Worker | None = None
        self._start_queue, self._has_slot = start_queue, False
        self.is_in_line = not self.inbox.held
        """Whether its worker waits in the start queue."""
        if self.inbox.held:
            self._hold(self.inbox.held)
        else:
            start_queue.enter(self._start)

    @property
    def name(self) -> str:
        """The learner's name."""
        return self.setup.learner

    @property
    def process(self) -> int | None:
        """The worker's process id, if it has one."""
        worker = self._worker
        return worker.process if worker is not None else None

    @property
    def version(self) -> int:
        """The newest version; 0 before there is any."""
        return self.store.latest if self.store is not None else 0

    def patch(self, have: int | None, want: int | None) -> Patch:
        """The patch from one version to another, cached because many clients of a learner ask for the same one."""
        store = self.store
        if store is None:
            raise VersionGone(f"The learner '{self.name}' has no version yet.")
        key = (have, store.latest if want is None else want)
        with self._patching:
            patch = self._patches.get(key)
            if patch is None:
                patch = self._patches[key] = store.patch(*key)
                if len(self._patches) > _KEPT_PATCHES:
                    self._patches.popitem(last=False)
            return patch

    @property
    def is_closing(self) -> bool:
        """Whether the server is closing it."""
        return self._closing

    def wait_until_known(self, timeout: float) -> bool:
        """Wait for the policy and its first version, or for a failure; false if neither came in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self.store is not None or self._has_ended(), timeout)

    def _has_ended(self) -> bool:
        return self._closing or self.condition in (
            Condition.REFUSED,
            Condition.FAILED,
            Condition.HELD,
            Condition.STOPPED,
        )

    def wait_for_change(self, is_over: Callable[[], bool], timeout: float) -> None:
        """Wait until `is_over`, which is called after every change."""
        with self._changed:
            self._changed.wait_for(is_over, timeout)

    def wake_waiting(self) -> None:
        """Let waiting threads check their condition again."""
        with self._changed:
            self._changed.notify_all()

    def announce(self) -> None:
        """Notify waiting threads and all listeners of a change."""
        with self._changed:
            self._changed.notify_all()
            listeners = list(self._listeners.values())
        for changed in listeners:
            changed()

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after every change, from any thread, until the returned function is called."""
        with self._changed:
            key = next(self._listener_ids)
            self._listeners[key] = changed

        def end() -> None:
            with self._changed:
                del self._listeners[key]

        return end

    @property
    def listening(self) -> int:
        """How many streams are told of every change."""
        with self._changed:
            return len(self._listeners)

    def resolve(self, algorithm: str, parameters: Mapping[str, Any]) -> Resolved:
        """The canonical form of a config, resolved by the learner's own worker."""
        worker = self._worker
        if worker is None:
            raise RuntimeError(f"The worker of learner '{self.name}' is not running. Try again.")
        return worker.resolve(algorithm, parameters)

    def give_order(self, mode: str, reason: str, ordered_by: str) -> ClientOrder:
        """Order what the clients have to do, durably, and send it to those that watch."""
        order = self.orders.give(mode, reason, ordered_by)
        self.announce()
        return order

    def pause(self, is_paused: bool) -> None:
        """Stop learning, or continue, durably. What arrives meanwhile is stored."""
        # A worker that is being created reads the file.
        with self._changed:
            self.orders.pause(is_paused)
            worker = self._worker
        if worker is not None:
            worker.pause(is_paused)
        self.announce()

    def make_room(self) -> None:
        """Ask the worker for a checkpoint, so that the log before it can be removed."""
        worker = self._worker
        if worker is not None:
            worker.make_room()

    def begin_closing(self) -> None:
        """Ask the worker to save and exit; no other is started."""
        with self._changed:
            self._closing = True
            worker, timer = self._worker, self._timer
            self._changed.notify_all()
        if timer is not None:
            timer.cancel()
        if worker is not None:
            worker.stop()

    def close(self, timeout: float) -> None:
        """End the worker and close the log."""
        self.begin_closing()
        worker = self._worker
        if worker is not None:
            worker.end(timeout)
        self.inbox.close()

    def _start(self) -> bool:
        """Start a worker, which holds its slot until it is ready or has failed; false if none was started."""
        with self._changed:
            self.is_in_line = False
            if self._closing:
                return False
            self._has_slot = True
            try:
                self._worker = self._new_worker()
                return True
            except OSError as error:
                self._has_slot = False
                problem = f"The worker could not be started: {error}"
        # Returning false frees the slot; calling `done` here would recurse through hundreds of waiting learners.
        self._note_failure(Failed(problem))
        self.announce()
        return False

    def _new_worker(self) -> Worker:
        options = self._budget.worker_options(self.setup)
        if self._workers == "threads":
            return ThreadWorker(self._directory, self.inbox.files, self._receive, options)
        return ProcessWorker(self._directory, self._fork_server, self._receive, options)

    def _free_slot(self) -> None:
        with self._changed:
            had, self._has_slot = self._has_slot, False
        if had:
            self._start_queue.done()

    def _nudge(self) -> None:
        worker = self._worker
        if worker is not None:
            worker.nudge()

    def _receive(self, event: Event) -> None:
        """Take an event, in the thread of the worker or in the one that reads its pipe."""
        match event:
            case Ready():
                self._note_ready(event)
                self._free_slot()
            case Sized():
                self._budget.note(self.setup, LearnerCost(event.weights, event.replay_bytes, event.memory_bytes))
                return
            case Published():
                self._publish(event.version, event.blob)
                _log.debug("Version %d.", event.version, extra={"learner": self.name, "version": event.version})
            case LearnerProgress():
                self.progress = event
                self.restarts.note_progress(event.position)
                self.inbox.folded(event.position)
                if event.position < self.inbox.stored.position and not self.orders.is_paused:
                    # A nudge for records that came meanwhile was held back while another was on its way.
                    self._nudge()
                # No caller waits for this, and waking hundreds of watchers costs more than the push that caused it.
                return
            case Saved():
                self.saved_at = self._clock()
                failpoint("before log prune")
                self.inbox.prune(event.oldest)
                failpoint("after log prune")
                return
            case Refused():
                self.condition, self.problem = Condition.REFUSED, event.problem
                self.is_over_limit = event.is_limit
                self._free_slot()
            case Held():
                self._hold(event.problem)
                self._free_slot()
            case Failed():
                self._note_failure(event)
                self._free_slot()
            case Stopped():
                self.condition = Condition.STOPPED
                self._free_slot()
        self.announce()

    def _note_ready(self, ready: Ready) -> None:
        policy = PolicySpec.from_json(ready.policy)
        self.config, self.noise_seed, self.policy = ready.config, ready.noise_seed, policy
        self.device = ready.device
        self.progress = ready.progress or self.progress
        if ready.checkpoint_age is not None:
            self.saved_at = self._clock() - ready.checkpoint_age
        self.form = SegmentFormat.of(policy)
        # The version first: how many more may come is derived from the records that are not folded yet.
        self._publish(ready.version, ready.blob)
        self.restarts.note_progress(ready.position)
        self.inbox.folded(ready.position)
        self.condition = Condition.RUNNING
        _log.info(
            "Learner %s is ready at version %d, record %d, on %s.",
            *(self.name, ready.version, ready.position, ready.device),
            extra={"learner": self.name, "version": ready.version},
        )

    def _publish(self, version: int, blob: bytes) -> None:
        """Store a version. A worker that folds its log again repeats versions, bit for bit, which are ignored."""
        failpoint("before version store")
        flat = np.frombuffer(blob, "<f4")
        store = self.store
        if store is not None and version == store.latest + 1:
            store.publish(flat)
        elif store is None or version > store.latest:
            fresh = ModelStore(flat)
            fresh.restore({"latest": version, "blob": flat})
            self.store = fresh
        failpoint("after version store")

    def _hold(self, problem: str) -> None:
        self.condition, self.problem = Condition.HELD, problem
        _log.error("Learner %s is HELD: %s", *(self.name, problem), extra={"learner": self.name})

    def _note_failure(self, failure: Failed) -> None:
        if self._closing:
            self.condition = Condition.STOPPED
            return
        self.problem = failure.problem
        self.restarts.note_progress(failure.position)
        delay = self.restarts.after_failure()
        if delay is None:
            self.condition = Condition.FAILED
            _log.error(
                "Learner %s FAILED and is not restarted: %s",
                *(self.name, failure.problem),
                extra={"learner": self.name},
            )
            return
        self.condition = Condition.STARTING
        _log.warning(
            "The worker of learner %s restarts in %.1f s: %s",
            *(self.name, delay, failure.problem),
            extra={"learner": self.name},
        )
        self._timer = threading.Timer(delay, self._restart)
        self._timer.daemon = True
        self._timer.start()

    def _restart(self) -> None:
        old = self._worker
        if old is not None:
            old.end(1.0)
        self.is_in_line = True
        self._start_queue.enter(self._start)

"""One learner as the service sees it: its inbox, its worker, its versions and its condition."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rl4sys.failpoints import failpoint
from rl4sys.policy import PolicySpec
from rl4sys.server.learners.change_notice import ChangeNotice
from rl4sys.server.learners.command_outcomes import CommandOutcomes
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.inbox import Inbox
from rl4sys.server.learners.learner_budget import LearnerBudget
from rl4sys.server.learners.learner_commands import LearnerCommand
from rl4sys.server.learners.learner_history import LearnerHistory
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.lineage import Lineage
from rl4sys.server.learners.operator_orders import ClientOrder, OperatorOrders
from rl4sys.server.learners.pacing import Pacing, fresh_batch
from rl4sys.server.learners.published_versions import PublishedVersions
from rl4sys.server.learners.saved_checkpoints import saved_checkpoints
from rl4sys.server.learners.supervised_worker import SupervisedWorker
from rl4sys.server.learners.version_archive import PolicyDescription
from rl4sys.server.learners.worker_starts import RestartBackoff, StartQueue
from rl4sys.server.options import ServiceOptions
from rl4sys.server.workers.events import (
    Commanded,
    Event,
    LearnerProgress,
    Published,
    Ready,
    Refused,
    Resolved,
    Saved,
    Sized,
    Stopped,
)
from rl4sys.server.workers.learner_limits import LearnerCost
from rl4sys.server.workers.worker import ProcessWorker, ThreadWorker, Worker, WorkerStarter
from rl4sys.weights import Patch, Version
from rl4sys.wire import SegmentFormat

_log = logging.getLogger(__name__)

_CHECK_SECONDS = 30.0
"""How long a command waits for a worker that is starting."""
_WORTHWHILE_BYTES = 1 << 20
"""A log of this size is worth waking a learner, in order to make room on the disk."""


class HostedLearner:
    """Keeps a worker running over a log. Workers come and go; inbox, policy and versions stay, and need none."""

    def __init__(
        self,
        directory: Path,
        options: ServiceOptions,
        clock: Callable[[], float],
        start_queue: StartQueue,
        starter: WorkerStarter,
        budget: LearnerBudget,
    ) -> None:
        """Serve from the archive of versions at once; the worker starts in its turn."""
        self.directory = directory
        self.setup = LearnerSetup.read(directory)
        self.orders = OperatorOrders(directory)
        self.commands = CommandOutcomes()
        self.notice = ""
        """What an operator may want to know although nothing is wrong."""
        self.departure = ""
        """Why it was deleted or replaced, for its clients; empty while it serves them."""
        self.is_over_limit = False
        """Whether it was refused because of a limit."""
        self.progress: LearnerProgress | None = None
        self.saved_at: float | None = None
        self.checkpoints = saved_checkpoints(directory)
        self.config = ""
        """The config in canonical form, once it is known."""
        self.device = ""
        """The torch device of the worker, once it was ready."""
        self.noise_seed = 0
        self.policy: PolicySpec | None = None
        self.exploit: PolicySpec | None = None
        self.form: SegmentFormat | None = None
        self._options, self._clock = options, clock
        self._budget, self._starter = budget, starter
        self._notice = ChangeNotice()
        self._refold_end = 0
        """Records below this were stored before the worker was ready."""
        self._active_at = clock()
        """When something last arrived, or the worker was needed."""
        self.inbox = Inbox(directory, options.limits, options.durability, self._nudge, clock, options.files)
        self._pacing = Pacing(self.inbox, clock)
        try:
            self.history = LearnerHistory(self.name, directory, options.durability, self.inbox.files, self.announce)
            self._adopt_archived()
        except BaseException:
            self.inbox.close()
            raise
        self.worker = SupervisedWorker(
            self.name,
            self._new_worker,
            self._receive,
            self.announce,
            start_queue,
            RestartBackoff(clock, options.restart_seconds),
        )
        if self.inbox.held:
            self.worker.suspend(Condition.HELD, self.inbox.held)
        else:
            self.worker.start()

    @property
    def name(self) -> str:
        """The learner's name."""
        return self.setup.learner

    @property
    def condition(self) -> Condition:
        """What becomes of its worker."""
        return self.worker.condition

    @property
    def problem(self) -> str:
        """What an operator should know: the last failure, and what is wrong at present; empty if nothing is."""
        own = [self.worker.problem] if self.worker.problem else []
        return " ".join([*own, *self.history.problems])

    @property
    def process(self) -> int | None:
        """The worker's process id, if it has one."""
        return self.worker.process

    @property
    def lineage(self) -> Lineage:
        """The history that its versions belong to."""
        return self.history.lineage

    @property
    def versions(self) -> PublishedVersions:
        """Its versions that clients may have."""
        return self.history.versions

    @property
    def newest(self) -> Version | None:
        """The newest version that clients may have; None before there is any."""
        return self.versions.newest

    @property
    def version(self) -> int:
        """Its number; 0 before there is any."""
        newest = self.versions.newest
        return newest.number if newest is not None else 0

    @property
    def known_version(self) -> int:
        """The greatest version that a client can have, as far as is known: unfolded records may repeat old ones."""
        return max(self.versions.highest, 0) + self.inbox.unfolded

    @property
    def replays(self) -> bool:
        """Whether decisions of a fallback, or of another policy, are of use to it, as far as is known."""
        return bool(self.config) and fresh_batch(self.config) is None

    @property
    def record_share(self) -> float:
        """The share of episodes that its clients are asked to record, by its present load."""
        progress = self.progress
        is_following = progress is not None and progress.position >= self._refold_end
        if not is_following or self.condition is not Condition.RUNNING:
            # What was learned before and is folded again says nothing about its clients.
            return self._pacing.value
        return self._pacing.update(fresh_batch(self.config), self.version)

    @property
    def share_for_version(self) -> float:
        """The same, when a version was just published: what it was learned from waits no longer."""
        return self._pacing.after_batch(fresh_batch(self.config), self.version)

    def patch(self, have: int | None, want: int | None) -> Patch:
        """The patch from one version to another, or `VersionGone`."""
        return self.versions.patch(have, want)

    @property
    def is_closing(self) -> bool:
        """Whether the server is closing it."""
        return self.worker.is_closing

    def wait_until_known(self, timeout: float) -> bool:
        """Wait for the policy and its first version, or for a failure; false if neither came in time."""
        return self._notice.wait_for(lambda: self.newest is not None or self._has_ended(), timeout)

    def wait_until_running(self, timeout: float) -> bool:
        """Wake its worker, and wait until it is ready, or for a failure; false if neither came in time."""

        def is_over() -> bool:
            is_running = self.condition is Condition.RUNNING and not self.worker.is_asleep
            return is_running or self._has_ended() or self.worker.is_backing_off

        self._active_at = self._clock()
        self.worker.wake()
        return self._notice.wait_for(is_over, timeout)

    def _has_ended(self) -> bool:
        ended = (Condition.REFUSED, Condition.FAILED, Condition.STOPPED, Condition.HELD)
        return self.is_closing or self.condition in ended

    def wait_for_change(self, is_over: Callable[[], bool], timeout: float) -> None:
        """Wait until `is_over`, which is called after every change."""
        self._notice.wait_for(is_over, timeout)

    def wake_waiting(self) -> None:
        """Let waiting threads check their condition again."""
        self._notice.wake_waiting()

    def announce(self) -> None:
        """Notify waiting threads and all listeners of a change."""
        self._notice.announce()

    def listen(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` after every change, from any thread, until the returned function is called."""
        return self._notice.listen(changed)

    @property
    def listening(self) -> int:
        """How many streams are notified of every change."""
        return self._notice.listeners

    def resolve(self, algorithm: str, parameters: Mapping[str, Any]) -> Resolved:
        """The canonical form of a config, resolved by the learner's own worker."""
        worker = self.worker.worker
        if worker is None:
            raise RuntimeError(f"The worker of learner '{self.name}' is not running. Try again.")
        return worker.resolve(algorithm, parameters)

    def check(self, command: LearnerCommand) -> Resolved:
        """The settings after a command, or why it is refused, as the learner's own worker finds."""
        self.wait_until_running(_CHECK_SECONDS)
        worker = self.worker.worker
        if worker is None or self.condition is not Condition.RUNNING:
            raise RuntimeError(f"The worker of learner '{self.name}' is not running.")
        return worker.check(self.commands.settings or self.config, command)

    def wait_for_command(self, position: int, timeout: float) -> Commanded | None:
        """What became of the command before a position of the log; None if it was not folded in time."""

        def is_over() -> bool:
            found = self.commands.find(position)
            return (found is not None and self.version >= found.version) or self._has_ended()

        self._notice.wait_for(is_over, timeout)
        return self.commands.find(position)

    def note(self, notice: str) -> None:
        """Show something in the status, and log it if it is new."""
        if notice and notice != self.notice:
            _log.warning("Learner %s: %s", self.name, notice, extra={"learner": self.name})
        self.notice = notice

    def leave(self, why: str) -> None:
        """End all its streams; its clients get `why`, and join again."""
        self.departure = why
        self.announce()

    def restart(self) -> None:
        """Begin again with a new worker, whatever became of the last one."""
        self.worker.restart()

    def give_order(self, mode: str, reason: str, ordered_by: str) -> ClientOrder:
        """Order what the clients have to do, durably, and send it to those that watch."""
        order = self.orders.give(mode, reason, ordered_by)
        self.announce()
        return order

    def pause(self, is_paused: bool) -> None:
        """Stop learning, or continue, durably. What arrives meanwhile is stored."""
        # A worker that is being created reads the file.
        self.orders.pause(is_paused)
        self.worker.tell(lambda worker: worker.pause(is_paused))
        self.announce()

    def make_room(self) -> None:
        """Ask the worker for a checkpoint, so that the log before it can be removed."""
        worker = self.worker.worker
        if worker is not None:
            worker.make_room()
        elif self.inbox.log_bytes >= _WORTHWHILE_BYTES:
            # It is asked again once it runs.
            self.worker.wake()

    def sleep_if_idle(self, seconds: float) -> None:
        """Let the worker end if there is nothing to do and nothing has arrived for so long. A push wakes it."""

        def is_idle() -> bool:
            is_done = not self.inbox.unfolded and self.history.refolded_version is None
            return is_done and self._clock() - self._active_at >= seconds

        self.worker.sleep(is_idle)

    def note_lineage(self, client: str, lineage: str, version: int | None) -> None:
        """A client acts with this version of this lineage; one that this learner does not continue is reported."""
        self.history.note_client(client, lineage, version, self.known_version)

    def accept_lineages(self) -> Lineage:
        """An operator wants clients of other lineages to follow this learner; returns its lineage, which may be new.

        It is new if versions that were published are lost, so that their numbers will be used again.
        """
        others = [holders.lineage for holders in self.history.other_lineages.holders()]
        if self.history.is_unreachable or self.lineage.id in others:
            self.new_lineage(others)
        else:
            self.history.replace_others()
        self.history.other_lineages.clear()
        self.announce()
        return self.lineage

    def new_lineage(self, others: list[str] | None = None) -> Lineage:
        """Begin a new lineage with what the worker makes of the log; clients of the present one, and others, follow."""
        self.worker.suspend(Condition.STARTING)
        self.history.begin_lineage(others or ())
        self._adopt_archived()
        self.worker.restart()
        return self.lineage

    def begin_closing(self) -> None:
        """Ask the worker to save and exit; no other is started."""
        self.worker.begin_closing()
        self.wake_waiting()

    def close(self, timeout: float) -> None:
        """End the worker and close the log."""
        self.worker.end(timeout)
        self.history.close()
        self.inbox.close()

    def _adopt_archived(self) -> None:
        description = self.versions.description
        if description is not None:
            self._adopt(description)

    def _adopt(self, description: PolicyDescription) -> None:
        policy = PolicySpec.from_json(description.explore)
        self.config, self.noise_seed, self.policy = description.config, description.noise_seed, policy
        self.exploit = PolicySpec.from_json(description.exploit) if description.exploit else None
        self.form = SegmentFormat.of(policy, self.lineage.id)

    def _new_worker(self, listen: Callable[[Event], None]) -> Worker:
        options = self._budget.worker_options(self.setup)
        if self._options.workers == "threads":
            return ThreadWorker(self.directory, self.inbox.files, listen, options)
        return ProcessWorker(self.directory, self._starter, listen, options)

    def _nudge(self) -> None:
        """There are new records. If the worker is about to end without them, `Stopped` finds them."""
        self._active_at = self._clock()
        if self.worker.is_asleep:
            self.worker.wake()
        elif (worker := self.worker.worker) is not None:
            worker.nudge()

    def _receive(self, event: Event) -> None:
        """Take an event, in the thread of the worker or in the one that reads its pipe."""
        match event:
            case Ready():
                self._note_ready(event)
            case Sized():
                self._budget.note(self.setup, LearnerCost(event.weights, event.replay_bytes, event.memory_bytes))
            case Commanded():
                self.commands.note(event)
                self._note_position(event.position)
                self.wake_waiting()
            case Published():
                if self.progress is not None:
                    # The rest follows a moment later; an exported version must not claim fewer steps than it has.
                    self.progress = replace(self.progress, steps=event.steps)
                self.history.take(event.version, event.blob)
                _log.debug("Version %d.", event.version, extra={"learner": self.name, "version": event.version})
            case LearnerProgress():
                # Clients do not need it, and waking hundreds of watchers costs more than the push that caused it.
                self.progress = event
                self._note_position(event.position)
                self._pacing.note_progress(event)
                if event.position < self.inbox.stored.position and not self.orders.is_paused:
                    # A nudge for records that came meanwhile was held back while another was on its way.
                    self._nudge()
            case Saved():
                self.saved_at = self._clock()
                self.checkpoints = saved_checkpoints(self.directory)
                failpoint("before log prune")
                self.inbox.prune(event.oldest)
                failpoint("after log prune")
            case Refused():
                self.is_over_limit = event.is_limit
            case Stopped() if self.inbox.unfolded:
                self.worker.wake()

    def _note_ready(self, ready: Ready) -> None:
        description = PolicyDescription(ready.policy, ready.exploit, ready.config, ready.noise_seed, self.lineage.id)
        self.versions.describe(description)
        self._adopt(description)
        self.commands.note_ready(ready)
        self.device = ready.device
        self.progress = ready.progress or self.progress
        if ready.checkpoint_age is not None:
            self.saved_at = self._clock() - ready.checkpoint_age
        # What the last worker saved when it was ended was not reported.
        self.checkpoints = saved_checkpoints(self.directory)
        self._refold_end = self.inbox.stored.position
        # The version first: how many more may come is derived from the records that are not folded yet.
        self.history.take(ready.version, ready.blob)
        self._note_position(ready.position)
        self._active_at = self._clock()
        self._pacing.restart()
        if ready.progress is not None:
            self._pacing.note_progress(ready.progress)
        _log.info(
            "Learner %s is ready at version %d, record %d, on %s.",
            *(self.name, ready.version, ready.position, ready.device),
            extra={"learner": self.name, "version": ready.version},
        )

    def _note_position(self, position: int) -> None:
        self.worker.restarts.note_progress(position)
        self.inbox.folded(position)
        if position >= self._refold_end and (loss := self.history.loss()) is not None:
            # In another thread, since this one reads the worker's events.
            threading.Thread(target=self.worker.suspend, args=(Condition.HELD, loss, 0.0), daemon=True).start()

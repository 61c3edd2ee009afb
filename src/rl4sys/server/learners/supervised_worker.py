"""The worker of a learner, kept running: started in its turn, restarted after failures, ended on request."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.worker_starts import RestartBackoff, StartQueue
from rl4sys.server.workers.events import Event, Failed, Held, LastEvent, Ready, Refused, Stopped
from rl4sys.server.workers.worker import Worker

_log = logging.getLogger(__name__)

_END_SECONDS = 10.0
"""How long a worker may take to save; then it is killed, which loses nothing."""

MakeWorker: TypeAlias = Callable[[Callable[[Event], None]], Worker]
"""Starts a worker that reports to the given function; may raise `OSError`."""


class SupervisedWorker:
    """At most one worker at a time, and what becomes of it. Any thread may call any method."""

    def __init__(
        self,
        learner: str,
        make: MakeWorker,
        listen: Callable[[Event], None],
        announce: Callable[[], None],
        start_queue: StartQueue,
        restarts: RestartBackoff,
    ) -> None:
        """`listen` gets the worker's events, before `condition` follows them and `announce` is called."""
        self.condition = Condition.STARTING
        self.problem = ""
        """The cause of the last failure; empty if there was none."""
        self.restarts = restarts
        self.is_in_line = False
        """Whether it waits in the start queue."""
        self.is_closing = False
        self._learner, self._make, self._listen, self._announce = learner, make, listen, announce
        self._start_queue = start_queue
        self._commands = threading.Lock()
        """Held by one command at a time, for as long as it takes."""
        self._lock = threading.RLock()
        self._worker: Worker | None = None
        self._run = 0
        """Counts workers: events of an earlier one are ignored."""
        self._has_slot = False
        self._may_run = True
        self._sleepy_run = -1
        """The worker that was asked to end because there is nothing to do."""
        self._is_woken = False
        """Whether there is something to do after all, once that one has ended."""
        self._timer: threading.Timer | None = None

    @property
    def worker(self) -> Worker | None:
        """The present worker, which may have ended."""
        return self._worker

    def tell(self, message: Callable[[Worker], None]) -> None:
        """Pass something on to the worker, if there is one. One that is being started is waited for."""
        with self._lock:
            worker = self._worker
        if worker is not None:
            message(worker)

    @property
    def process(self) -> int | None:
        """The worker's process id, if it has one."""
        worker = self._worker
        return worker.process if worker is not None else None

    @property
    def is_backing_off(self) -> bool:
        """Whether it failed, and is restarted later."""
        return self._timer is not None

    def start(self) -> None:
        """Start it as soon as there is a slot."""
        with self._lock:
            if self.is_in_line or self.is_closing:
                return
            self.is_in_line = True
        self._start_queue.enter(self._start)

    def restart(self) -> None:
        """Begin again with a new worker, whatever became of the last one; earlier failures are forgotten."""
        with self._commands:
            self._end_present(Condition.STARTING)
            with self._lock:
                self._may_run, self.problem = True, ""
                self.restarts.reset()
            self.start()
        self._announce()

    def suspend(self, condition: Condition, problem: str = "", timeout: float = _END_SECONDS) -> None:
        """End it until `resume` or `restart`; `condition` says why. A process that takes longer to save is killed."""
        with self._commands:
            with self._lock:
                self._may_run = False
                self.problem = problem or self.problem
            self._end_present(condition, timeout)
            if condition is Condition.HELD:
                _log.error("Learner %s is HELD: %s", self._learner, problem, extra={"learner": self._learner})
        self._announce()

    def resume(self) -> None:
        """Start it again after `suspend`; does nothing otherwise."""
        with self._commands:
            with self._lock:
                if self._may_run:
                    return
                self._may_run, self.condition = True, Condition.STARTING
            self.start()
        self._announce()

    @property
    def is_asleep(self) -> bool:
        """Whether it sleeps, or is about to, so that new work has to `wake` it."""
        return self.condition is Condition.SLEEPING or self._sleepy_run == self._run

    def sleep(self, is_idle: Callable[[], bool]) -> None:
        """Let it save and end if it runs and `is_idle`, which is called with a lock held. Does not wait for its end."""
        with self._lock:
            worker = self._worker
            is_running = self.condition is Condition.RUNNING and self._sleepy_run != self._run
            if worker is None or not is_running or self.is_closing or not is_idle():
                return
            self._sleepy_run, self._is_woken = self._run, False
        worker.stop()

    def wake(self) -> None:
        """Start it again if it sleeps or is about to. Does not wait for its start."""
        with self._lock:
            if self._sleepy_run == self._run:
                self._is_woken = True
                return
            if self.condition is not Condition.SLEEPING or self.is_closing:
                return
            self.condition = Condition.STARTING
        # In another thread: this one may be about to acknowledge a push.
        threading.Thread(target=self.start, name=f"wakes {self._learner}", daemon=True).start()

    def begin_closing(self) -> None:
        """Ask the worker to save and exit; no other is started."""
        with self._lock:
            self.is_closing = True
            worker, timer = self._worker, self._timer
        if timer is not None:
            timer.cancel()
        if worker is not None:
            worker.stop()

    def end(self, timeout: float) -> None:
        """Close it."""
        self.begin_closing()
        worker = self._worker
        if worker is not None:
            worker.end(timeout)

    def _end_present(self, condition: Condition, timeout: float = _END_SECONDS) -> None:
        """End the present worker, if there is one, and ignore what it still reports."""
        with self._lock:
            self._run += 1
            self.condition = condition
            worker, timer = self._worker, self._timer
            self._worker = self._timer = None
        if timer is not None:
            timer.cancel()
        if worker is not None:
            worker.end(timeout)
        self._free_slot()

    def _start(self) -> bool:
        """Start a worker, which holds its slot until it is ready or has failed; false if none was started."""
        with self._lock:
            self.is_in_line = False
            if self.is_closing or not self._may_run:
                return False
            self._run += 1
            self._has_slot = True
            try:
                self._worker = self._make(partial(self._receive, self._run))
                return True
            except OSError as error:
                self._has_slot = False
                failure = Failed(f"The worker could not be started: {error}")
        # Returning false frees the slot; calling `done` here would recurse through hundreds of waiting learners.
        self._note_failure(failure)
        self._announce()
        return False

    def _free_slot(self) -> None:
        with self._lock:
            had, self._has_slot = self._has_slot, False
        if had:
            self._start_queue.done()

    def _receive(self, run: int, event: Event) -> None:
        """Take an event, in the thread of the worker or in the one that reads its pipe."""
        with self._lock:
            if run != self._run:
                return
        self._listen(event)
        if not isinstance(event, Ready | LastEvent):
            return
        match event:
            case Ready():
                self._note(run, Condition.RUNNING)
            case Refused():
                self._note(run, Condition.REFUSED, event.problem)
            case Held():
                self._note(run, Condition.HELD, event.problem)
                _log.error("Learner %s is HELD: %s", self._learner, event.problem, extra={"learner": self._learner})
            case Failed():
                self._note_failure(event)
            case Stopped():
                self._note_stop(run)
        self._free_slot()
        if isinstance(event, Stopped) and self._is_woken:
            self.wake()
        self._announce()

    def _note(self, run: int, condition: Condition, problem: str | None = None) -> None:
        with self._lock:
            # An operator may have decided otherwise meanwhile.
            if run == self._run:
                self.condition = condition
                self.problem = self.problem if problem is None else problem

    def _note_stop(self, run: int) -> None:
        """It ended as it was asked to: for good, or to sleep unless there is work again."""
        with self._lock:
            if run != self._run:
                return
            if self._sleepy_run != run or self.is_closing:
                self.condition = Condition.STOPPED
                return
            old, self._worker, self._sleepy_run = self._worker, None, -1
            self.condition = Condition.SLEEPING
        _log.info("Learner %s sleeps.", self._learner, extra={"learner": self._learner})
        if old is not None:
            old.end(_END_SECONDS)

    def _note_failure(self, failure: Failed) -> None:
        with self._lock:
            self._sleepy_run = -1
            if self.is_closing:
                self.condition = Condition.STOPPED
                return
            self.problem = failure.problem
            delay = self.restarts.after_failure(failure)
            if delay is None:
                self.condition = Condition.FAILED
            else:
                self.condition = Condition.STARTING
                self._timer = threading.Timer(delay, self._start_again, (self._run,))
                self._timer.daemon = True
                self._timer.start()
        if delay is None:
            _log.error(
                "Learner %s FAILED and is not restarted: %s",
                *(self._learner, failure.problem),
                extra={"learner": self._learner},
            )
        else:
            _log.warning(
                "The worker of learner %s restarts in %.1f s: %s",
                *(self._learner, delay, failure.problem),
                extra={"learner": self._learner},
            )

    def _start_again(self, run: int) -> None:
        with self._lock:
            if run != self._run or not self._may_run:
                return
            old, self._timer = self._worker, None
        if old is not None:
            old.end(1.0)
        self.start()

"""Workers as the host sees them: a learner runs in a process of its own, or in a thread. Neither imports torch here."""

from __future__ import annotations

import itertools
import json
import os
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Literal, Protocol

from rl4sys.records import Files, RecordReader
from rl4sys.server.learners.learner_commands import LearnerCommand
from rl4sys.server.learners.operator_orders import OperatorOrders
from rl4sys.server.logs import level, log_again
from rl4sys.server.workers.events import Event, Failed, LastEvent, Logged, Resolved, read_event
from rl4sys.server.workers.learner_limits import NO_OPTIONS, WorkerOptions

WorkerKind = Literal["processes", "threads", "ray"]
_RESOLVE_SECONDS = 10.0
_CHECK_SECONDS = 60.0


class Worker(Protocol):
    """One run of a learner's worker; its last event is one of `LastEvent`."""

    @property
    def process(self) -> int | None:
        """Its process id; None where it shares this process."""

    def nudge(self) -> None:
        """There are new records. Never waits."""

    def make_room(self) -> None:
        """Ask it to save a checkpoint that makes the log before it unnecessary. Never waits."""

    def resolve(self, algorithm: str, parameters: Mapping[str, Any]) -> Resolved:
        """The canonical form of a config, or what is wrong with it."""

    def check(self, settings: str, command: LearnerCommand) -> Resolved:
        """The settings after a command, in canonical form, or why it is refused. Nothing is changed."""

    def pause(self, is_paused: bool) -> None:
        """Ask it to stop folding, or to continue."""

    def stop(self) -> None:
        """Ask it to save and exit."""

    def end(self, timeout: float) -> None:
        """Wait until it has exited; a process that has not by then is killed, which loses nothing."""


class StartedWorker(Protocol):
    """A worker that was requested of another process, and may not have started yet."""

    @property
    def pid(self) -> int | None:
        """Its process on this machine, once it has started; None for one elsewhere."""

    def wait_for_start(self) -> None:
        """Wait until it has started; raises `OSError` if it could not."""

    def wait_for_exit(self) -> int | None:
        """Wait until it has ended; its exit code, or None if that is unknown."""

    def kill(self) -> None:
        """End it at once."""

    def close(self) -> None:
        """Release one that has ended."""


class WorkerStarter(Protocol):
    """The process that starts workers: here, or on other machines."""

    def fork(self, requests: int, events: int, directory: Path, level: int, options: WorkerOptions) -> StartedWorker:
        """Request a worker that uses these ends of pipes, which also stay open here. Does not wait for its start."""

    def kill(self) -> None:
        """End the process that starts workers."""


class ThreadWorker:
    """A worker in this process, for embedded use."""

    def __init__(
        self, directory: Path, files: Files | None, listen: Callable[[Event], None], options: WorkerOptions = NO_OPTIONS
    ) -> None:
        # Here and not above: a server with worker processes never imports torch.
        from rl4sys.server.workers.learner_config import load_learner_plugins
        from rl4sys.server.workers.worker_main import WorkerControl, work

        def open_log() -> RecordReader:
            return RecordReader(directory / "log", files=files)

        load_learner_plugins(options.plugins)
        self._directory = directory
        self._control = WorkerControl(is_paused=OperatorOrders(directory).is_paused)
        self._thread = threading.Thread(
            target=work,
            args=(directory, open_log, self._control, listen, options),
            name=f"learner {directory.name}",
            daemon=True,
        )
        self._thread.start()

    @property
    def process(self) -> int | None:
        """None: it shares this process."""
        return None

    def nudge(self) -> None:
        """Wake the thread."""
        self._control.nudge()

    def make_room(self) -> None:
        """Ask the thread for a checkpoint."""
        self._control.make_room()

    def resolve(self, algorithm: str, parameters: Mapping[str, Any]) -> Resolved:
        """Parse it here."""
        from rl4sys.config import ConfigError
        from rl4sys.server.workers.learner_config import canonical, resolve

        try:
            return Resolved(0, canonical(resolve(algorithm, parameters)), "")
        except ConfigError as error:
            return Resolved(0, "", str(error))

    def check(self, settings: str, command: LearnerCommand) -> Resolved:
        """Check it here."""
        from rl4sys.server.workers.folded_commands import REFUSALS, check

        try:
            return Resolved(0, check(self._directory, settings, command), "")
        except REFUSALS as error:
            return Resolved(0, "", str(error))

    def pause(self, is_paused: bool) -> None:
        """Ask the thread to stop folding, or to continue."""
        self._control.pause(is_paused)

    def stop(self) -> None:
        """Ask the thread to end."""
        self._control.stop()

    def end(self, timeout: float) -> None:
        """Wait for the thread; one that is stuck in an update is left behind as a daemon."""
        self._control.stop()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)


class ProcessWorker:
    """A worker in a process of its own, on this machine or another."""

    def __init__(
        self,
        directory: Path,
        starter: WorkerStarter,
        listen: Callable[[Event], None],
        options: WorkerOptions = NO_OPTIONS,
    ) -> None:
        self._listen, self._learner, self._directory = listen, directory.name, directory
        request_end, requests = os.pipe()
        events, event_end = os.pipe()
        try:
            self._child = starter.fork(request_end, event_end, directory, level(), options)
        except OSError:
            os.close(requests)
            os.close(events)
            raise
        finally:
            os.close(request_end)
            os.close(event_end)
        self._requests: int | None = requests
        self._writing = threading.Lock()
        self._nudged = False
        self._questions = itertools.count()
        self._answers: dict[int, Future[Resolved]] = {}
        self._answering = threading.Lock()
        self._ended: RuntimeError | None = None
        self._thread = threading.Thread(
            target=self._receive, args=(os.fdopen(events, "rb"),), name=f"events of {directory.name}", daemon=True
        )
        self._thread.start()

    @property
    def process(self) -> int | None:
        """The process id, once it has started."""
        return self._child.pid

    def nudge(self) -> None:
        """Send one line, unless one is on its way already."""
        if not self._nudged:
            self._nudged = True
            self._send({"nudge": True})

    def make_room(self) -> None:
        """Ask the process for a checkpoint."""
        self._send({"make_room": True})

    def resolve(self, algorithm: str, parameters: Mapping[str, Any]) -> Resolved:
        """Ask the process, which has the algorithms."""
        return self._ask({"algorithm": algorithm, "parameters": parameters}, _RESOLVE_SECONDS)

    def check(self, settings: str, command: LearnerCommand) -> Resolved:
        """Ask the process, which has the algorithms. Large commands go through a file."""
        file = self._directory / "scratch" / "command"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(command.encode())
        try:
            return self._ask({"check": str(file), "settings": settings}, _CHECK_SECONDS)
        finally:
            file.unlink(missing_ok=True)

    def _ask(self, question: Mapping[str, Any], seconds: float) -> Resolved:
        number = next(self._questions)
        answer: Future[Resolved] = Future()
        with self._answering:
            if self._ended is not None:
                raise self._ended
            self._answers[number] = answer
        try:
            self._send({"resolve": number, **question})
            return answer.result(seconds)
        except TimeoutError as error:
            raise RuntimeError(f"The worker of learner '{self._learner}' is busy.") from error
        finally:
            del self._answers[number]

    def pause(self, is_paused: bool) -> None:
        """Ask the process to stop folding, or to continue."""
        self._send({"pause": is_paused})

    def stop(self) -> None:
        """Ask the process to exit."""
        self._send({"stop": True})

    def end(self, timeout: float) -> None:
        """Wait for the process, then kill it."""
        self.stop()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)
            if self._thread.is_alive():
                self._child.kill()
                self._thread.join()
        with self._writing:
            if self._requests is not None:
                os.close(self._requests)
                self._requests = None
                self._child.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        """Write a line whole. The worker reads at once; one that does not is dead, and its pipe closes."""
        line = json.dumps(message).encode() + b"\n"
        with self._writing:
            if self._requests is None:
                return
            try:
                while line:
                    line = line[os.write(self._requests, line) :]
            except BrokenPipeError:
                # The thread that receives events reports how it ended.
                return

    def _receive(self, events: Any) -> None:
        last, problem = self._receive_all(events)
        with self._answering:
            self._ended = RuntimeError(f"The worker of learner '{self._learner}' {problem}.")
            for answer in list(self._answers.values()):
                answer.set_exception(self._ended)
        if isinstance(last, LastEvent):
            self._listen(last)
        else:
            self._listen(Failed(f"The worker's process {problem}.", 0))

    def _receive_all(self, events: Any) -> tuple[Event | None, str]:
        """Pass its events on until it has ended; returns the last event, and how it ended."""
        last: Event | None = None
        with events:
            try:
                self._child.wait_for_start()
            except OSError as error:
                return None, f"could not be started: {error}"
            while (event := read_event(events)) is not None:
                self._nudged = False
                if isinstance(event, Resolved):
                    if (answer := self._answers.get(event.id)) is not None:
                        answer.set_result(event)
                    continue
                if isinstance(event, Logged):
                    log_again(event, self._learner)
                    continue
                last = event
                if not isinstance(event, LastEvent):
                    self._listen(event)
        code = self._child.wait_for_exit()
        return last, f"ended with code {code}" if code is not None else "ended with an unknown code"

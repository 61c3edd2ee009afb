"""Runs trials as SLURM jobs: one job per launch, which continues after preemption, failed nodes and time limits."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rl4sys.clusters.slurm_job import SCRIPT, SlurmJob
from rl4sys.clusters.slurm_queue import ENDED, UNKNOWN, SlurmQueue, SlurmRefused
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialEvent, TrialLaunch

SIGNAL_SECONDS = 120
"""Seconds between SIGTERM and the time limit: enough to save."""
_STOPPED = 130


class SlurmOptionsError(ValueError):
    """Options that SLURM cannot fulfil."""


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """What every job gets. Partition, account, time limit and memory are taken from SLURM's own SBATCH_ variables."""

    jobs: int
    """Jobs in the queue at the same time."""
    cpus: int = 1
    gpus: float = 0
    retries: int = 3
    """How often a trial is submitted again after its job was lost. Time limits are not losses."""
    poll_seconds: float = 5.0
    """Seconds between two questions to SLURM."""
    lag_seconds: float = 15.0
    """Seconds that a report may take from one machine to another through the shared file system."""


class SlurmLauncher:
    """Submits one job per launch. Jobs survive this process; the same command finds them again."""

    def __init__(self, options: SlurmOptions, clock: Callable[[], float] = time.monotonic) -> None:
        if options.gpus != int(options.gpus):
            raise SlurmOptionsError(f"--gpus {options.gpus:g}: SLURM gives whole GPUs to a job. Give 1, or 0 for none.")
        self._options, self._clock = options, clock
        self._queue = SlurmQueue()
        self._running: dict[str, _Submitted] = {}
        self._waiting: list[TrialEvent] = []
        self._asked_to_stop = False
        self._asked_at = -options.poll_seconds
        self._has_submitted = False

    @property
    def has_free_slot(self) -> bool:
        """Whether fewer jobs are in the queue than may be."""
        return len(self._running) < self._options.jobs

    @property
    def is_busy(self) -> bool:
        """Whether any job is in the queue or has an event that was not taken."""
        return bool(self._running or self._waiting)

    def describe(self) -> str:
        """How many jobs there are at once, and with what."""
        gpus = f" and {self._options.gpus:g} GPU" if self._options.gpus else ""
        return f"{self._options.jobs} at a time as SLURM jobs with {self._options.cpus} CPU{gpus} each"

    def start(self, launch: TrialLaunch) -> None:
        """Submit a job, or find the one that an earlier process submitted."""
        states = self._queue.states() or {}
        for job in SlurmJob.find(launch):
            if states.get(job.number, UNKNOWN) not in (*ENDED, UNKNOWN):
                self._running[launch.key] = _Submitted(job, job.number)
                self._waiting.append(Reported(launch.key, {"warning": f"continues as job {job.number}, which runs"}))
                return
        job = SlurmJob.create(launch, self._options.cpus)
        try:
            self._running[launch.key] = _Submitted(job, self._submit(job))
        except SlurmRefused as error:
            job.remove()
            if not self._has_submitted:
                raise
            # The others continue.
            self._waiting.append(Ended(launch.key, Outcome.FAILED, str(error)))
            return
        self._has_submitted = True
        self._waiting.append(Reported(launch.key, {"output": str(job.output)}))

    def events(self, seconds: float) -> Sequence[TrialEvent]:
        """What the jobs reported, and which of them ended."""
        found, self._waiting = self._waiting, []
        for submitted in self._running.values():
            found += submitted.job.read()
        if self._clock() - self._asked_at >= self._options.poll_seconds:
            self._asked_at = self._clock()
            found += self._find_ended()
        if not found:
            time.sleep(seconds)
        return found

    def stop(self, key: str) -> None:
        """Ask one job to save and end."""
        submitted = self._running[key]
        submitted.is_asked_to_stop = True
        self._queue.ask_to_stop([submitted.number])

    def ask_to_stop(self) -> None:
        """Ask every job to save and end; those that wait are cancelled."""
        self._asked_to_stop = True
        if self._running:
            self._queue.ask_to_stop(submitted.number for submitted in self._running.values())

    def close(self) -> None:
        """Cancel the jobs that still run."""
        if self._running:
            self._queue.cancel(submitted.number for submitted in self._running.values())
        self._running.clear()
        self._waiting.clear()

    def _submit(self, job: SlurmJob) -> str:
        gpus = [f"--gpus={int(self._options.gpus)}"] if self._options.gpus else []
        options = [
            f"--job-name=rl4sys-{job.directory.name}",
            f"--cpus-per-task={self._options.cpus}",
            *gpus,
            "--requeue",
            f"--signal=B:TERM@{SIGNAL_SECONDS}",
            f"--chdir={Path.cwd()}",
            f"--output={job.output}",
            "--open-mode=append",
        ]
        number = self._queue.submit(options, job.directory / SCRIPT)
        job.submitted(number)
        return number

    def _find_ended(self) -> list[TrialEvent]:
        states = self._queue.states()
        if states is None:
            # SLURM is being restarted; jobs run on meanwhile.
            return []
        found: list[TrialEvent] = []
        for submitted in list(self._running.values()):
            state = states.get(submitted.number, UNKNOWN).split()[0]
            if state in ENDED or state == UNKNOWN:
                found += self._conclude(submitted, state)
            else:
                submitted.ended_at = None
        return found

    def _conclude(self, submitted: _Submitted, state: str) -> list[TrialEvent]:
        """What the end of a job means for its trial."""
        job = submitted.job
        found: list[TrialEvent] = [*job.read()]
        submitted.ended_at = self._clock() if submitted.ended_at is None else submitted.ended_at
        is_late = self._clock() - submitted.ended_at < self._options.lag_seconds
        if job.exit_code is None and state in ("COMPLETED", "FAILED", UNKNOWN) and is_late:
            return found
        if state == UNKNOWN:
            state = self._queue.final_state(submitted.number)
        if job.exit_code == 0:
            return [*found, *self._end(job, Outcome.FINISHED)]
        if job.exit_code not in (None, _STOPPED):
            return [*found, *self._end(job, Outcome.FAILED, job.cause or f"its output is in {job.output}")]
        if (
            self._asked_to_stop
            or submitted.is_asked_to_stop
            or (job.exit_code == _STOPPED and job.was_stopped_by_alert)
        ):
            return [*found, *self._end(job, Outcome.STOPPED)]
        return [*found, *self._continue(submitted, state)]

    def _continue(self, submitted: _Submitted, state: str) -> list[TrialEvent]:
        """Submit a trial again whose job ended before it did."""
        job, number = submitted.job, submitted.number
        how = f"job {number} ended as {state}"
        if state in ("CANCELLED", "OUT_OF_MEMORY") and job.exit_code is None:
            advice = "" if state == "CANCELLED" else "; give more memory with SBATCH_MEM_PER_CPU=8G"
            return self._end(job, Outcome.FAILED, f"{how}{advice}; its output is in {job.output}")
        if not (job.exit_code == _STOPPED and job.has_progressed):
            submitted.losses += 1
        if submitted.losses > self._options.retries:
            times = f"{submitted.losses} times" if submitted.losses > 1 else "once"
            return self._end(job, Outcome.FAILED, f"{how}, lost {times}; its output is in {job.output}")
        try:
            submitted.number = self._submit(job)
        except SlurmRefused as error:
            return self._end(job, Outcome.FAILED, f"{how}, and it could not be submitted again: {error}")
        submitted.ended_at = None
        return [Reported(job.launch.key, {"warning": f"{how}; it continues as job {submitted.number}"})]

    def _end(self, job: SlurmJob, outcome: Outcome, cause: str | None = None) -> list[TrialEvent]:
        del self._running[job.launch.key]
        moved = job.remove()
        if moved is not None and cause is not None:
            cause = cause.replace(str(job.output), moved.values["output"])
        return [*([moved] if moved is not None else []), Ended(job.launch.key, outcome, cause)]


@dataclass(slots=True)
class _Submitted:
    """A launch with the job that runs it now."""

    job: SlurmJob
    number: str
    losses: int = 0
    is_asked_to_stop: bool = False
    ended_at: float | None = None
    """When its end was first seen."""

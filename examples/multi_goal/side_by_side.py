"""Trains algorithms side by side, each in its own process, and passes their metrics on."""

from __future__ import annotations

import multiprocessing
import queue
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from findings import Findings, analyse

from rl4sys.experiments import MetricRecord, Run, load_experiment

CONFIGS = {"sql": "sql_MultiGoal.yaml", "sac": "sac_MultiGoal.yaml"}
_POLL_SECONDS = 0.5
"""Seconds between two checks that the processes are alive."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to train, for how long, and where to write the results."""

    algorithms: tuple[str, ...]
    steps: int
    seed: int
    rollouts: int
    output: Path

    def overrides(self) -> dict[str, Any]:
        """The settings that this plan changes in the configs."""
        return {
            "experiment.seed": self.seed,
            "experiment.threads": 1,
            "experiment.directory": str(self.output / "runs"),
            "training.total_timesteps": self.steps,
            "training.eval_frequency": 0,
            "training.log_frequency": max(1, self.steps // 30),
            "logging.terminal": False,
        }


class TrainingFailed(RuntimeError):
    """A process ended without a result."""


class _QueueLogger:
    """A logger that sends records to another process."""

    def __init__(self, algorithm: str, messages: Any) -> None:
        self._algorithm, self._messages = algorithm, messages

    def log(self, record: MetricRecord) -> None:
        self._messages.put((self._algorithm, record))

    def close(self) -> None:
        """Nothing is held."""


def train(plan: Plan, show: Callable[[str, MetricRecord], None]) -> dict[str, Findings]:
    """Train all algorithms of the plan at once; `show` is called with each record."""
    context = multiprocessing.get_context("spawn")
    messages = context.Queue()
    workers = {
        name: context.Process(target=_work, args=(plan, name, messages), name=name, daemon=True)
        for name in plan.algorithms
    }
    for worker in workers.values():
        worker.start()
    found: dict[str, Findings] = {}
    try:
        while len(found) < len(workers):
            name, message = _next(messages, workers, found)
            if isinstance(message, Findings):
                found[name] = message
            else:
                show(name, message)
    finally:
        for worker in workers.values():
            worker.terminate()
            worker.join()
    return {name: found[name] for name in plan.algorithms}


def _next(
    messages: Any, workers: dict[str, BaseProcess], found: dict[str, Findings]
) -> tuple[str, MetricRecord | Findings]:
    """The next message, or an error if a process that owes one has ended."""
    while True:
        gone = [worker for name, worker in workers.items() if name not in found and worker.exitcode is not None]
        try:
            message: tuple[str, MetricRecord | Findings] = messages.get(timeout=_POLL_SECONDS)
            return message
        except queue.Empty:
            for worker in gone:
                raise TrainingFailed(
                    f"The process that trains {worker.name} ended with exit code {worker.exitcode}; see above."
                ) from None


def _work(plan: Plan, name: str, messages: Any) -> None:
    # The parent handles Ctrl-C and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    run = Run.create(load_experiment(CONFIGS[name], plan.overrides()))
    run.train([_QueueLogger(name, messages)], stop=_is_orphaned)
    if _is_orphaned():
        return
    messages.put((name, analyse(run.learner.algorithm, run.learner.store.newest.blob, plan.rollouts, plan.seed)))


def _is_orphaned() -> bool:
    """Whether the parent process has ended."""
    parent = multiprocessing.parent_process()
    return parent is not None and not parent.is_alive()

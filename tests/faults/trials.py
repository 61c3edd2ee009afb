"""Kills a process of its own at one failpoint after the other: `python -m tests.faults.trials PLACE` reads trials.

A trial is a line of JSON, and so is its result. Each runs in a fork, so that torch is imported once for all of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from tests.faults import life_cycle_scenario, outbox_scenario, reset_scenario, service_scenario

from rl4sys import failpoints

LIVES: dict[str, tuple[Callable[[Path], None], Callable[[Path], None]]] = {
    "outbox": (outbox_scenario.live, outbox_scenario.recover),
    "life cycle": (life_cycle_scenario.live, life_cycle_scenario.recover),
    "reset": (reset_scenario.live, reset_scenario.recover),
    **{
        method: (
            lambda place, method=method: service_scenario.live(place, method),  # type: ignore[misc]
            lambda place, method=method: service_scenario.recover(place, method),  # type: ignore[misc]
        )
        for method in service_scenario.METHODS
    },
}


def reached_points(place: Path, life: str) -> dict[str, int]:
    """How often a run without kills reaches each failpoint."""
    report = place / "reached.json"

    def run() -> None:
        counts: Counter[str] = Counter()
        failpoints.listen(lambda name: counts.update([name]))
        LIVES[life][0](place)
        report.write_text(json.dumps(counts))

    place.mkdir(parents=True)
    problem = in_fork(run, place)
    assert problem == "", problem
    return dict(json.loads(report.read_text()))


def trial(place: Path, life: str, name: str, count: int) -> str:
    """The problem after a kill at the COUNTth time; empty if there is none."""
    lock, left = threading.Lock(), [count]

    def listener(reached: str) -> None:
        if reached != name:
            return
        with lock:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        failpoints.listen(listener)
        LIVES[life][0](place)

    place.mkdir(parents=True)
    ended = in_fork(run, place)
    if ended not in ("", f"signal {signal.SIGKILL}"):
        return f"before the kill: {ended}"
    # With another order of threads, a run may reach this point less often.
    return in_fork(lambda: LIVES[life][1](place), place)


def in_fork(run: Callable[[], None], place: Path) -> str:
    """Run it in a process of its own; returns the traceback or the signal that ended it, or nothing."""
    trace = place / "trace"
    child = os.fork()
    if child == 0:
        try:
            run()
        except BaseException:
            trace.write_text(traceback.format_exc())
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return trace.read_text() if os.WEXITSTATUS(status) else ""


def main(place: Path) -> None:
    torch.set_num_threads(1)
    # A kill leaves the page cache as it is; what is lost without a sync is tried on the simulated disk.
    os.fsync = os.fdatasync = lambda descriptor: None
    known: dict[str, dict[str, int]] = {}
    for line in sys.stdin:
        asked: dict[str, Any] = json.loads(line)
        life = asked["life"]
        if life not in known:
            known[life] = reached_points(place / f"reached {life}", life)
        if "name" not in asked:
            answer: dict[str, Any] = {"reached": known[life]}
        else:
            times = known[life].get(asked["name"], 0)
            count = 1 if asked["turn"] == 0 else random.Random(asked["turn"]).randint(1, max(1, times))
            problem = trial(place / "trial", life, asked["name"], count)
            answer = {"count": count, "problem": problem}
            shutil.rmtree(place / "trial", ignore_errors=not problem)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Tasks for SLURM jobs that need no training."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

Report = Callable[[Mapping[str, Any]], None]


def look(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Report the order."""
    report({"answer": values["answer"], "threads": os.environ["OMP_NUM_THREADS"]})
    return True


def begin_or_finish(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Begin a run and wait for its end, or finish the run of an earlier attempt."""
    if values["run"] is not None:
        report({"continued": values["run"]})
        return True
    report({"run": "runs/one/the-run"})
    report({"began": True})
    while not stop():
        time.sleep(0.01)
    return False


def learn_until_the_time_limit(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Stop twice as when SIGTERM arrives ahead of the time limit."""
    count = Path("attempts")
    done = int(count.read_text()) if count.exists() else 0
    count.write_text(str(done + 1))
    report({"record": {"step": done}})
    return done == 2


def make_a_run(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Make the directory of a run."""
    Path("runs/a-run").mkdir()
    report({"run": "runs/a-run"})
    print("made")
    return True

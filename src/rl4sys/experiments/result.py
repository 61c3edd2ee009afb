"""The result of a run, with the hashes by which two runs are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rl4sys.atomic_files import replace_file
from rl4sys.checkpoints import ReplayRows
from rl4sys.experiments.metrics import metrics_digest
from rl4sys.state import State, digest


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run."""

    steps: int
    finished: bool
    evaluation: float | None
    """Mean return of the last evaluation."""
    best: float | None
    """Mean return of the best evaluation."""
    seconds: float
    """Wall-clock time of this process; resumed runs count from the resumption."""
    fingerprint: Mapping[str, str]
    """Hashes of weights, optimizer, buffer, random generators and metric history: equal for equal runs."""
    solved: str | None = None
    """Why the run ended before its last step as a success, if it did: an alert or a callback said so."""

    def write(self, path: Path) -> None:
        """Keep the result."""
        replace_file(path, json.dumps(asdict(self), indent=1).encode())

    @classmethod
    def read(cls, path: Path) -> Result | None:
        """The result that was kept, unless there is none or it is damaged: a run can always be concluded again."""
        try:
            return cls(**json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None


def fingerprint(state: Mapping[str, Any], replay: ReplayRows | None, metrics: Path) -> dict[str, str]:
    """Hashes of the parts of a run. Two runs with equal hashes are equal to the bit."""
    learner = state["learner"]
    rows: State = {} if replay is None else dict(replay.rows(replay.first, replay.total))
    return {
        "algorithm": digest(learner["algorithm"]),
        "buffer": digest({"state": learner["buffer"], "rows": rows}),
        "learner": digest({name: part for name, part in learner.items() if name not in ("algorithm", "buffer")}),
        "environments": digest(state["source"]),
        "metrics": metrics_digest(metrics),
    }

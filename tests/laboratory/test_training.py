"""Training from Python is noted in the index like training from the command line."""

from __future__ import annotations

from pathlib import Path

import rl4sys
from experiments.runs import PPO, values
from rl4sys.laboratory.run_index.index import Index


def test_a_run_that_was_trained_from_python_is_in_the_index(tmp_path: Path) -> None:
    run = rl4sys.train(values(PPO, tmp_path), {"experiment.name": "mine", "logging.terminal": False})
    with Index(tmp_path) as index:
        (record,) = index.select()
    assert (record.id, record.status, record.steps) == (run.directory.path.name, "finished", 256)

"""One rank of a run: python rank_program.py RANK RANKS CONFIG.yaml|RUN PORT_FILE STOP_STEP"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

# They register environments that some of the tests have.
import experiments.monitoring.spiky  # noqa: F401
import image_environment  # noqa: F401
from rl4sys.experiments import Run, RunDirectory, load_experiment
from rl4sys.experiments.ranks import RankPlace
from rl4sys.experiments.ranks.rank_group import RankGroup
from rl4sys.experiments.ranks.run_rank import run_rank


def main(rank: int, ranks: int, source: Path, port_file: Path, stop_step: int) -> None:
    """Meet the other ranks at the port in a file, and run to the end or to a step."""
    while rank and not port_file.exists():
        time.sleep(0.01)
    port = int(port_file.read_text()) if rank else 0

    def announce(port: int) -> None:
        aside = port_file.with_suffix(".new")
        aside.write_text(str(port))
        aside.rename(port_file)

    def lead(group: RankGroup) -> None:
        if source.is_dir():
            run = Run.resume(RunDirectory(source), group=group)
        else:
            run = Run.create(load_experiment(source), group=group)
        run.train(stop=lambda: run.steps >= stop_step)

    run_rank(RankPlace(rank, ranks, port=port), lead, announce if rank == 0 else lambda port: None)


if __name__ == "__main__":
    # As in the tests of runs: no test here cuts the power.
    os.fsync = lambda descriptor: None
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))

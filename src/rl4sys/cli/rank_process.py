"""The process of one rank of `rl4sys train --ranks`: it reads its launch from standard input, and reports to a pipe.

Rank 0 prints what a run in one process prints. The others print nothing, and leave signals to it.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from typing import Any, NoReturn

import typer

from rl4sys.cli.exit_codes import ERROR, INTERRUPTED, RANK_LOST
from rl4sys.cli.main import explain
from rl4sys.cli.output import send_logs
from rl4sys.cli.rank_training import lead, leave_signals_to_rank_0
from rl4sys.experiments.ranks import RankPlace
from rl4sys.experiments.ranks.rank_group import RankLost
from rl4sys.experiments.ranks.run_rank import run_rank
from rl4sys.laboratory.trials.report_pipe import ReportPipe
from rl4sys.laboratory.trials.worker_process import end_with_parent


def main() -> NoReturn:
    """Run one rank; the exit code is that of the command, or says that another rank was lost."""
    pipe = ReportPipe(int(sys.argv[1]))
    launch = json.loads(sys.stdin.readline())
    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        raise SystemExit(_run(launch, pipe))
    except RankLost:
        raise SystemExit(RANK_LOST) from None
    except KeyboardInterrupt:
        # A second request to stop.
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:  # any failure is reported to the launching process
        pipe.report({"failed": explain(error)})
        raise SystemExit(ERROR) from None


def _run(launch: Mapping[str, Any], pipe: ReportPipe) -> int:
    place = RankPlace(**launch["place"])
    if place.rank == 0:
        send_logs(debug=launch["values"]["debug"])
    else:
        leave_signals_to_rank_0()
    try:
        run_rank(
            place,
            lambda group: lead(group, launch["values"], lambda run: pipe.report({"run": run})),
            lambda port: pipe.report({"port": port}),
        )
    except typer.Exit as ending:
        return ending.exit_code
    return 0


if __name__ == "__main__":
    main()

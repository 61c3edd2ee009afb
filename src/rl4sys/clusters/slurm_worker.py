"""The process of one SLURM job: it reads its order from a directory, and reports into a file there."""

from __future__ import annotations

import json
import os
import platform
import sys
from pathlib import Path
from typing import NoReturn

from rl4sys.clusters.slurm_job import ORDER, ReportFile
from rl4sys.laboratory.trials.worker_process import StopRequest, run_task


def main() -> NoReturn:
    """Run an order; SIGTERM, as ahead of the time limit, makes it save and end with exit code 130."""
    stop = StopRequest()
    directory = Path(sys.argv[1])
    order = json.loads((directory / ORDER).read_text("utf-8"))
    file = ReportFile(directory)
    values = order["values"]
    if "is_elsewhere" in values or "parts" in values:
        # Copies of plug-ins are written into the working directory.
        os.chdir(directory)
    if (run := file.run_of_earlier_attempt()) is not None and "run" in values:
        values["run"] = run
    file.report({"attempt": int(os.environ.get("SLURM_RESTART_COUNT", "0")), "host": platform.node()})
    code = run_task(order["task"], values, file.report, stop)
    file.report({"exit": code})
    raise SystemExit(code)


if __name__ == "__main__":
    main()

"""SLURM as far as jobs are concerned: the same commands, with jobs as processes of this machine.

Run as `sbatch`, `squeue` or `scancel` through the scripts that `FakeSlurm` writes. A job is a directory with the files
`argv`, `state`, `pid` and, if its node is to fail, `requeue`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path


class FakeSlurm:
    """The fake's commands in a directory, which is to be first on PATH."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.jobs = directory, directory / "jobs"
        self.jobs.mkdir(parents=True)
        for name in ("sbatch", "squeue", "scancel"):
            program = directory / name
            program.write_text(f'#!/bin/sh\nexec {sys.executable} -S {__file__} {self.jobs} {name} "$@"\n')
            program.chmod(0o755)

    def argv(self, number: int = 1) -> list[str]:
        """What a job was submitted with."""
        words: list[str] = json.loads((self.jobs / str(number) / "argv").read_text())
        return words

    def numbers(self) -> list[int]:
        """The numbers of all jobs."""
        return sorted(int(path.name) for path in self.jobs.iterdir() if path.name.isdecimal())

    def state(self, number: int) -> str:
        """The state of a job."""
        return (self.jobs / str(number) / "state").read_text()

    def lose(self, number: int, state: str, *, requeue: bool = False) -> None:
        """End a job as when its node fails; with `requeue` it starts again under the same number."""
        place = self.jobs / str(number)
        (place / ("requeue" if requeue else "lost")).write_text(state)
        os.killpg(int((place / "pid").read_text()), signal.SIGKILL)

    def end_all(self) -> None:
        """End every job, so that no test leaves processes."""
        subprocess.run([str(self.directory / "scancel"), *map(str, self.numbers())], check=False)
        deadline = time.monotonic() + 30
        while any(self.state(number) in ("RUNNING", "PENDING") for number in self.numbers()):
            assert time.monotonic() < deadline
            time.sleep(0.02)


def sbatch(jobs: Path, words: list[str]) -> None:
    if (jobs / "refuse").exists():
        sys.stderr.write("sbatch: error: Batch job submission failed: Invalid partition\n")
        sys.exit(1)
    number = 1 + max([int(path.name) for path in jobs.iterdir() if path.name.isdecimal()], default=0)
    place = jobs / str(number)
    place.mkdir()
    (place / "argv").write_text(json.dumps(words))
    state = "PENDING" if (jobs / "full").exists() else "RUNNING"
    (place / "state").write_text(state)
    if state == "RUNNING":
        output = next(word.partition("=")[2] for word in words if word.startswith("--output="))
        with open(output, "a") as file:
            subprocess.Popen(
                [sys.executable, "-S", __file__, str(jobs), "host", str(number), words[-1]],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    print(number)


def host(jobs: Path, words: list[str]) -> None:
    number, script = words
    place, restarts = jobs / number, 0
    while True:
        environment = os.environ | {"SLURM_JOB_ID": number, "SLURM_RESTART_COUNT": str(restarts)}
        process = subprocess.Popen(["sh", script], env=environment, start_new_session=True)
        (place / "pid.new").write_text(str(process.pid))
        os.replace(place / "pid.new", place / "pid")
        code = process.wait()
        if not (place / "requeue").exists():
            break
        (place / "requeue").unlink()
        (place / "pid").unlink()
        restarts += 1
    lost = place / "lost"
    (place / "state.new").write_text(lost.read_text() if lost.exists() else "COMPLETED" if code == 0 else "FAILED")
    os.replace(place / "state.new", place / "state")


def squeue(jobs: Path, words: list[str]) -> None:
    for place in sorted(jobs.iterdir()):
        if place.name.isdecimal() and not (place / "forgotten").exists():
            print(f"{place.name}|{(place / 'state').read_text()}")


def scancel(jobs: Path, words: list[str]) -> None:
    options = [word for word in words if word.startswith("-")]
    for number in (word for word in words if not word.startswith("-")):
        place = jobs / number
        state = (place / "state").read_text()
        if state == "PENDING" and "--signal=TERM" not in options:
            (place / "state").write_text("CANCELLED")
        elif state == "RUNNING" and "--state=PENDING" not in options:
            while not (place / "pid").exists():
                time.sleep(0.01)
            pid = int((place / "pid").read_text())
            if "--signal=TERM" in options:
                os.kill(pid, signal.SIGTERM)
            else:
                (place / "lost").write_text("CANCELLED")
                os.killpg(pid, signal.SIGKILL)


if __name__ == "__main__":
    {"sbatch": sbatch, "host": host, "squeue": squeue, "scancel": scancel}[sys.argv[2]](Path(sys.argv[1]), sys.argv[3:])

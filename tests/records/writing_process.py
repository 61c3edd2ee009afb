"""A program that appends to a log from several threads and prints what was acknowledged.

`python -m tests.records.writing_process DIRECTORY RUN [FAILPOINT COUNT]`: with the last two it also prunes, and dies
when it reaches that failpoint for the COUNTth time.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from tests.records.failpoint_files import FailpointFiles

from rl4sys.records import DiskFiles, DurableLog, RecordLog

THREADS = 4
FILE_BYTES = 3000


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def appends(log: DurableLog, run: str, thread: int, prunes: bool) -> None:
    turn = 0
    while True:
        payloads = [f"{run} {thread} {turn + place} ".encode().ljust(100, b".") for place in range(2)]
        numbers = log.append_and_wait(payloads)
        for number, payload in zip(numbers, payloads, strict=True):
            say(f"{number} {payload.decode()}")
        turn += 2
        if prunes and thread == 0 and turn % 20 == 0:
            log.prune(numbers.start - 50)


def main() -> None:
    directory, run, *failpoint = sys.argv[1:]
    reached = threading.Lock()
    remaining = [int(failpoint[1])] if failpoint else []

    def at(name: str) -> None:
        if failpoint and name == failpoint[0]:
            with reached:
                remaining[0] -= 1
                if remaining[0] == 0:
                    os._exit(137)

    log = RecordLog(Path(directory), file_bytes=FILE_BYTES, files=FailpointFiles(DiskFiles(), at))
    shared = DurableLog(log)
    for thread in range(THREADS):
        threading.Thread(target=appends, args=(shared, run, thread, bool(failpoint)), daemon=True).start()
    # Exits with its parent process, even if that was killed.
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    main()

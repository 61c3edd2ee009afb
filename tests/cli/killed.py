"""`rl4sys` on a machine that dies at the n-th time it waits for the disk: python killed.py N ARGUMENTS…"""

from __future__ import annotations

import os
import signal
import sys

from rl4sys.cli.main import main

if __name__ == "__main__":
    left = int(sys.argv.pop(1))
    real = os.fsync

    def fsync(descriptor: int) -> None:
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        real(descriptor)

    os.fsync = fsync
    main()

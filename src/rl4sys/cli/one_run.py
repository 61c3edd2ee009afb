"""One run of several, in a process of its own: a config comes in, its records go out as lines of JSON.

Standard input stays open as long as whoever started it lives; when it closes, the run stops with a checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from typing import IO, Any

from rl4sys.cli.conduct import INTERRUPTED, interruptible
from rl4sys.cli.main import explain
from rl4sys.cli.output import send_logs
from rl4sys.experiments import Record, Run, load_experiment
from rl4sys.laboratory.following import follow


class Reporter:
    """A logger that hands records to the process that shows them."""

    def __init__(self, output: IO[str]) -> None:
        self._output = output

    def log(self, record: Record) -> None:
        """Hand over one record."""
        self._output.write(f'{{"record": {record.to_json()}}}\n')
        self._output.flush()

    def send(self, **facts: Any) -> None:
        """Hand over anything else."""
        self._output.write(json.dumps(facts) + "\n")
        self._output.flush()

    def close(self) -> None:
        """Nothing is held."""


def main() -> None:
    """Read a resolved config from standard input and train."""
    order = json.loads(sys.stdin.readline())
    send_logs(debug=order["debug"])
    reporter = Reporter(sys.stdout)
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    try:
        # The parent has told the user already.
        with interruptible(say=lambda text: None) as stop:
            run = Run.create(load_experiment(order["config"]), allow_fallback=order["allow_fallback"])
            if order["debug"]:
                run.debug()
            reporter.send(directory=str(run.directory.path))
            with follow(run.directory.path) as follower:
                result = run.train([reporter, follower], stop)
    except Exception as error:  # whatever it is, the parent tells it beside the outcome of the others
        reporter.send(error=explain(error))
        raise SystemExit(1) from None
    raise SystemExit(0 if result.finished else INTERRUPTED)


def _stop_with_parent() -> None:
    # Not sys.stdin, whose lock a blocked thread would keep until after the interpreter has gone.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()

"""One run of several, in a process of its own: the config comes in, the directory goes out."""

from __future__ import annotations

import argparse
import json
import sys

from rl4sys.cli.output import console, errors
from rl4sys.cli.train import conduct
from rl4sys.experiments import Run, load_experiment


def main() -> None:
    """Read a resolved config from standard input, train, and print where the run is."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--allow-fallback", action="store_true")
    arguments = parser.parse_args()
    try:
        config = load_experiment(json.load(sys.stdin), ["logging.terminal=false"])
        run = Run.create(config, allow_fallback=arguments.allow_fallback)
        conduct(run)
    except Exception as error:  # the parent shows the last line
        errors.print(str(error) or type(error).__name__, markup=False, soft_wrap=True)
        raise SystemExit(1) from error
    console.file.write(f"{run.directory.path}\n")


if __name__ == "__main__":
    main()

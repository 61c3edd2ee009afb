"""`rl4sys reindex`: make the index of runs anew."""

from __future__ import annotations

from pathlib import Path

from rl4sys.cli.runs_option import Debug, Json, Runs


class NotWritable(PermissionError):
    """There is no place for an index."""


def reindex(runs: Runs = Path("runs"), json: Json = False, debug: Debug = False) -> None:
    """Read every run again and make the index anew.

    This is never needed: every command looks for runs that are new, changed or gone, and replaces a damaged index.
    It helps when somebody has changed files within runs by hand.

    [bold]Examples[/]

      rl4sys reindex

      rl4sys reindex --runs /data/runs
    """
    from rl4sys.cli.output import print_json, show, tell
    from rl4sys.laboratory.run_index.index import open_index

    with open_index(runs, tell, anew=True) as index:
        count = index.count()
    if not index.is_kept:
        raise NotWritable(
            f"{index.path} cannot be written, so runs are read each time. For an index, let this account write into "
            f"{runs}, and see that the disk has room."
        )
    if json:
        print_json({"runs": count, "index": str(index.path)})
    else:
        show(f"{count:,} run(s) in {index.path}")

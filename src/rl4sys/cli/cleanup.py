"""`rl4sys cleanup`: free disk space, and keep configs, metrics and results."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.options import Debug, Json, Runs

if TYPE_CHECKING:
    from rl4sys.laboratory.run_index.cleanup import Removal

_NAMED = 5
"""Runs that are named in one line."""


class NotConfirmed(ValueError):
    """Something would be removed without confirmation."""


def cleanup(
    conditions: Annotated[
        list[str] | None,
        typer.Argument(metavar="CONDITION", show_default=False, help="Only runs that match, as for `list`."),
    ] = None,
    keep_best: Annotated[int, typer.Option(min=0, help="Best runs of each environment to keep complete.")] = 10,
    keep_recent: Annotated[
        str,
        typer.Option(metavar="N|DAYSd", help="Newest runs to keep: a number, or all of the last days, such as 30d."),
    ] = "30",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Remove without asking for confirmation.")] = False,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Remove checkpoints, replay, policies, videos and event files of runs that are neither among the best nor new.

    Configs, manifests, results, metrics, tags and notes are kept, so these runs can still be listed, shown and
    compared, but not resumed or evaluated. Running runs, and runs with the tag 'keep', are never touched.

    [bold]Examples[/]

      rl4sys cleanup --keep-best 10 --keep-recent 30 --dry-run

      rl4sys cleanup --keep-best 3 --keep-recent 30d

      rl4sys cleanup status=failed --keep-recent 0 --yes
    """
    from rl4sys.cli.exit_codes import NO
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.laboratory.formatting import format_size
    from rl4sys.laboratory.run_index.cleanup import Recent, plan_removals
    from rl4sys.laboratory.run_index.filters import parse_filters
    from rl4sys.laboratory.run_index.index import Query, open_index

    condition, recent = parse_filters(conditions or ()), Recent.parse(keep_recent, time.time())
    with open_index(runs, report) as index:
        matching = {record.id for record in index.select(Query(condition))}
        found = plan_removals(runs, index.select(), keep_best, recent)
        found = [removal for removal in found if removal.record.id in matching]
    if json and not (dry_run or yes):
        raise NotConfirmed("--json cannot ask for confirmation: give --dry-run to see what would be removed, or --yes.")
    if not json:
        _show(found, runs)
    if found and not (dry_run or yes):
        typer.confirm("Remove this?", abort=True, err=True)
    done = found if dry_run else [removal for removal in found if _is_removed(removal)]
    if json:
        removed = [
            {
                "run": str(removal.directory),
                "parts": removal.parts,
                "bytes": removal.size,
                "unresumable": removal.ends_resuming,
            }
            for removal in done
        ]
        print_json({"runs": removed, "bytes": sum(removal.size for removal in done), "removed": not dry_run})
    elif dry_run:
        report("dry run: nothing was removed")
    elif done:
        show(f"removed {format_size(sum(removal.size for removal in done))} from {len(done)} run(s)")
    if len(done) < len(found):
        raise typer.Exit(NO)


def _is_removed(removal: Removal) -> bool:
    """Remove from one run; an error there does not affect the others."""
    from rl4sys.cli.main import explain
    from rl4sys.cli.output import report
    from rl4sys.laboratory.run_index.cleanup import RunInTraining, remove

    try:
        remove(removal)
    except (RunInTraining, OSError) as error:
        report(f"skipped: {removal.record.id}: {explain(error)}")
        return False
    return True


def _show(found: Sequence[Removal], root: Path) -> None:
    from rl4sys.cli.output import print_table, report
    from rl4sys.laboratory.formatting import format_size

    if not found:
        report(f"nothing to remove in {root}")
        return
    rows = [[removal.record.id, ", ".join(removal.parts), format_size(removal.size)] for removal in found]
    print_table(("run", "to remove", "size"), rows)
    total = sum(removal.size for removal in found)
    report(f"{len(found)} run(s), {format_size(total)} can be removed; configs and metrics are kept")
    if ended := [removal.record.id for removal in found if removal.ends_resuming]:
        more = f" and {len(ended) - _NAMED} more" if len(ended) > _NAMED else ""
        report(
            f"{len(ended)} unfinished run(s) could not be resumed any more: {', '.join(ended[:_NAMED])}{more}. "
            f"Keep one with: rl4sys tag RUN +keep"
        )

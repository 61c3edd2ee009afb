"""`rl4sys cleanup`: make room, and keep what tells how runs went."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rl4sys.cli.runs_option import Debug, Json, Runs

if TYPE_CHECKING:
    from rl4sys.laboratory.run_index.cleanup import Waste


class NotAsked(ValueError):
    """Something would be removed that nobody agreed to."""


def cleanup(
    conditions: Annotated[
        list[str] | None,
        typer.Argument(metavar="CONDITION", show_default=False, help="Only runs that fit, as for `list`."),
    ] = None,
    keep_best: Annotated[int, typer.Option(min=0, help="The best runs of each environment stay whole.")] = 10,
    keep_recent: Annotated[int, typer.Option(min=0, help="The newest runs stay whole.")] = 30,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be removed, and remove nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    runs: Runs = Path("runs"),
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Remove checkpoints, replay, policies, videos and event files of runs that are neither good nor new.

    Configs, manifests, results, metrics, tags and notes stay, so these runs can still be listed, shown and compared,
    but not resumed or evaluated. Runs that are running, and runs with the tag 'keep', are never touched.

    [bold]Examples[/]

      rl4sys cleanup --keep-best 10 --keep-recent 30 --dry-run

      rl4sys cleanup status=failed --keep-recent 0 --yes
    """
    from rl4sys.cli.exit_codes import NO
    from rl4sys.cli.output import print_json, show, tell
    from rl4sys.laboratory.formatting import format_size
    from rl4sys.laboratory.run_index.cleanup import find_waste
    from rl4sys.laboratory.run_index.filters import parse_filters
    from rl4sys.laboratory.run_index.index import Query, open_index

    condition = parse_filters(conditions or ())
    with open_index(runs, tell) as index:
        fitting = {record.id for record in index.select(Query(condition))}
        found = find_waste(runs, index.select(), keep_best, keep_recent)
        found = [waste for waste in found if waste.record.id in fitting]
    if json and not (dry_run or yes):
        raise NotAsked("With --json nobody can be asked: give --dry-run to see what would be removed, or --yes.")
    if not json:
        _show(found, runs)
    if found and not (dry_run or yes):
        typer.confirm("Remove this?", abort=True, err=True)
    done = found if dry_run else [waste for waste in found if _is_removed(waste)]
    if json:
        facts = [{"run": str(waste.directory), "parts": waste.parts, "bytes": waste.size} for waste in done]
        print_json({"runs": facts, "bytes": sum(waste.size for waste in done), "removed": not dry_run})
    elif dry_run:
        tell("nothing was removed: this is a dry run")
    elif done:
        show(f"removed {format_size(sum(waste.size for waste in done))} from {len(done)} run(s)")
    if len(done) < len(found):
        raise typer.Exit(NO)


def _is_removed(waste: Waste) -> bool:
    """Remove what is in one run; what is in the way there does not keep the others."""
    from rl4sys.cli.main import explain
    from rl4sys.cli.output import tell
    from rl4sys.laboratory.run_index.cleanup import Busy, remove

    try:
        remove(waste)
    except (Busy, OSError) as error:
        tell(f"left alone: {waste.record.id}: {explain(error)}")
        return False
    return True


def _show(found: Sequence[Waste], root: Path) -> None:
    from rl4sys.cli.output import print_table, tell
    from rl4sys.laboratory.formatting import format_size

    if not found:
        tell(f"nothing to remove in {root}")
        return
    rows = [[waste.record.id, ", ".join(waste.parts), format_size(waste.size)] for waste in found]
    print_table(("run", "to be removed", "size"), rows)
    total = sum(waste.size for waste in found)
    tell(f"{len(found)} run(s), {format_size(total)} to be removed; configs and metrics stay")

"""`rl4sys data`: check, repair, back up and restore the data directory of a training server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rl4sys.cli.exit_codes import NO
from rl4sys.cli.options import Debug, Json

if TYPE_CHECKING:
    from rl4sys.server.data_directory.backup_manifest import BackupManifest
    from rl4sys.server.data_directory.findings import DataFinding
    from rl4sys.server.data_directory.rebuilt_learner import Beginning
    from rl4sys.server.data_directory.repair import Repair

data = typer.Typer(
    name="data",
    no_args_is_help=True,
    help="Check, repair, back up and restore the data directory of a training server.",
    rich_markup_mode="rich",
)

Directory = Annotated[Path, typer.Argument(metavar="DIR", help="The directory of `rl4sys serve --data`.")]
Backup = Annotated[Path, typer.Argument(metavar="BACKUP", help="The directory of a backup.")]
Learner = Annotated[str | None, typer.Option(metavar="LEARNER", help="Only this learner; by default all.")]


class RepairNotChosen(ValueError):
    """Two repairs were asked for that exclude each other, or one without its learner or confirmation."""


@data.command()
def check(directory: Directory, learner: Learner = None, json: Json = False, debug: Debug = False) -> None:
    """Read every byte and list what is wrong, whether it matters, and what to do. Changes nothing.

    Works while a server is using the directory: what that is writing at the moment is not damage. Exit codes: 0 if
    nothing matters, 1 if something does, 2 for an error.

    [bold]Examples[/]

      rl4sys data check /var/lib/rl4sys

      rl4sys data check /var/lib/rl4sys --learner shared~lander --json
    """
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.server.data_directory.directory_check import check_directory

    found = check_directory(directory, learner)
    if found.is_live and not json:
        report(f"A server is using {directory}: it was checked as it was at this moment.")
    if json:
        findings = [finding._asdict() for finding in found.findings]
        print_json(
            {"directory": str(directory), "is_live": found.is_live, "problems": found.problems, "findings": findings}
        )
    elif found.findings:
        _show_findings(found.findings)
    else:
        show(f"Nothing is wrong with {directory} ({_learners(len(found.learners))}).")
    if found.problems:
        raise typer.Exit(NO)


@data.command()
def repair(
    directory: Directory,
    learner: Learner = None,
    from_checkpoint: Annotated[
        bool,
        typer.Option("--from-checkpoint", help="If acknowledged records are lost: keep the newest sound checkpoint."),
    ] = False,
    from_log: Annotated[
        bool,
        typer.Option("--from-log", help="If acknowledged records are lost: learn again from the readable log."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Repair what can be repaired without losing anything that could still be used. End the server first.

    Nothing is deleted: damaged files are moved to DIR/deleted, or copied there before they are changed. If acknowledged
    records are lost, nothing is done before you choose, for one learner at a time, --from-checkpoint or --from-log; the
    output says how many records each one loses. Better is a backup, if there is one. Exit codes: 0 if nothing matters
    any more, 1 if something does, 2 for an error.

    [bold]Examples[/]

      rl4sys data repair /var/lib/rl4sys --dry-run

      rl4sys data repair /var/lib/rl4sys --yes

      rl4sys data repair /var/lib/rl4sys --learner shared~lander --from-checkpoint
    """
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.server.data_directory.directory_check import alone_with, check_directory, require_data
    from rl4sys.server.data_directory.repair import plan_repairs

    beginning = _beginning(learner, from_checkpoint=from_checkpoint, from_log=from_log)
    if json and not (dry_run or yes):
        raise RepairNotChosen("--json cannot ask for confirmation: give --dry-run to see what would be done, or --yes.")
    require_data(directory)
    with alone_with(directory):
        before = check_directory(directory, learner, is_alone=True)
        repairs = plan_repairs(before, beginning, time.time())
        if not json:
            _show_repairs(repairs, directory)
        if repairs and not (dry_run or yes):
            typer.confirm("Do this?", abort=True, err=True)
        done = [{"learner": each.learner, "what": each.what, "lost": each.lost, "moved_to": ""} for each in repairs]
        if not dry_run:
            for each, described in zip(repairs, done, strict=True):
                place = each.carry_out()
                described["moved_to"] = str(place or "")
                if place is not None and not json:
                    show(f"The damaged files of {each.learner} are kept in {place}")
        after = before if dry_run else check_directory(directory, learner, is_alone=True)
    if json:
        left = [finding._asdict() for finding in after.findings if finding.matters]
        print_json({"directory": str(directory), "repaired": not dry_run, "repairs": done, "left": left})
    elif after.problems:
        report("This is left:")
        _show_findings([finding for finding in after.findings if finding.matters])
    if dry_run and not json:
        report("dry run: nothing was changed")
    if after.problems:
        raise typer.Exit(NO)


@data.command()
def backup(
    directory: Directory,
    target: Annotated[Path, typer.Argument(metavar="BACKUP", help="A new directory, best on another disk.")],
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Copy the data of a server, which need not be stopped, so that they can be restored.

    Everything that was acknowledged before the backup began is in it. Each learner is copied in a state that it could
    have had after a crash at one moment meanwhile; restored, it learns the same weights from it, bit for bit. The
    manifest with the SHA-256 of every file is written last: what a killed backup leaves cannot be restored by mistake.
    Not in it: the config, certificates and tokens of the server, and DIR/deleted. Exit codes: 0, 1 if a damaged learner
    was left out, 2 for an error.

    [bold]Examples[/]

      rl4sys data backup /var/lib/rl4sys /backups/rl4sys-2026-11-17

      rl4sys data backup /var/lib/rl4sys /backups/$(date +%F-%H%M) --json
    """
    from rl4sys.cli.output import print_json, report, show
    from rl4sys.server.data_directory.backup import back_up, data_bytes

    with _progress_bar("backing up", data_bytes(directory) if directory.is_dir() else 0) as advance:
        manifest = back_up(directory, target, time.time(), advance)
    if json:
        print_json({"backup": str(target)} | _summary(manifest))
    else:
        learners = _learners(len(manifest.learners))
        show(f"{learners}, {len(manifest.files)} files, {manifest.total_bytes:,} bytes: {target}")
        show(f"To restore it: rl4sys data restore {target} NEW_DIR")
    for name, why in manifest.left_out.items():
        report(f"left out: {name}: {why}")
    if manifest.left_out:
        raise typer.Exit(NO)


@data.command()
def restore(
    backup: Backup,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The directory to serve: new, or empty.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Move the learners that are there to DIR/deleted first.")
    ] = False,
    keep_lineages: Annotated[
        bool,
        typer.Option(
            "--keep-lineages", help="Let clients follow at once: the server had ended before the backup was made."
        ),
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Restore a backup, after every byte of it was verified. End the server first.

    Either all of it is restored or nothing: a server refuses a directory in which a restore was interrupted. What was
    acknowledged after the backup is lost, since clients no longer have it; segments that they still have are stored as
    before. Clients keep their versions, which may be newer than the backup, and record nothing until you decide: rl4sys
    status names them, and rl4sys learners accept LEARNER makes them follow. If no version can be newer, because the
    server had ended before the backup, --keep-lineages spares you that. Orders that were given after the backup have to
    be given again.

    [bold]Examples[/]

      rl4sys data restore /backups/rl4sys-2026-11-17 /var/lib/rl4sys-restored

      rl4sys data restore /backups/rl4sys-2026-11-17 /var/lib/rl4sys --replace
    """
    from rl4sys.cli.output import print_json, show
    from rl4sys.server.data_directory.backup_manifest import BackupManifest
    from rl4sys.server.data_directory.restore import restore as restore_backup

    total = 2 * BackupManifest.read(backup).total_bytes
    with _progress_bar("restoring", total) as advance:
        manifest, replaced = restore_backup(
            backup, directory, time.time(), replace=replace, keeps_lineages=keep_lineages, progress=advance
        )
    if json:
        print_json({"directory": str(directory), "replaced": str(replaced or "")} | _summary(manifest))
        return
    show(f"{_learners(len(manifest.learners))}, {manifest.total_bytes:,} bytes: restored to {directory}")
    if replaced is not None:
        show(f"What was there before is in {replaced}")
    show(f"Serve it with: rl4sys serve --data {directory}")
    if not keep_lineages:
        show(
            "Then let the clients of each learner follow: rl4sys learners accept LEARNER. Until then they keep theirs."
        )


def _beginning(learner: str | None, *, from_checkpoint: bool, from_log: bool) -> Beginning | None:
    from rl4sys.server.data_directory.rebuilt_learner import Beginning

    if from_checkpoint and from_log:
        raise RepairNotChosen("--from-checkpoint and --from-log exclude each other: choose one.")
    if (from_checkpoint or from_log) and learner is None:
        raise RepairNotChosen("--from-checkpoint and --from-log lose experience, so they need --learner LEARNER.")
    if from_checkpoint:
        return Beginning.CHECKPOINT
    return Beginning.LOG if from_log else None


def _show_findings(findings: list[DataFinding]) -> None:
    from rl4sys.cli.output import print_table

    # What matters first.
    rows = sorted(findings, key=lambda finding: not finding.matters)
    print_table(
        ("learner", "matters", "what", "where", "what to do"),
        [[each.learner or "-", "yes" if each.matters else "no", each.what, each.where, each.advice] for each in rows],
    )


def _show_repairs(repairs: list[Repair], directory: Path) -> None:
    from rl4sys.cli.output import report, show

    if not repairs:
        report(f"There is nothing to repair in {directory} without a decision.")
    for each in repairs:
        show(f"{each.learner or directory}: {each.what}")


def _learners(count: int) -> str:
    """`1 learner`, `2 learners`."""
    return f"{count} learner{'s' * (count != 1)}"


def _summary(manifest: BackupManifest) -> dict[str, Any]:
    from dataclasses import asdict

    return {
        "began": manifest.began,
        "software": manifest.software,
        "files": len(manifest.files),
        "bytes": manifest.total_bytes,
        "learners": {name: asdict(learner) for name, learner in manifest.learners.items()},
        "left_out": dict(manifest.left_out),
    }


@contextmanager
def _progress_bar(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar over bytes, on a terminal."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from rl4sys.cli.output import errors

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=errors, disable=not errors.is_terminal) as progress:
        task = progress.add_task(what, total=total)
        yield lambda size: progress.update(task, advance=size)

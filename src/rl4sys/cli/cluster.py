"""`rl4sys cluster`: machines for experiments, in a cloud, on Kubernetes or under SLURM."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

from rl4sys.cli.options import Debug, Json

if TYPE_CHECKING:
    from rl4sys.clusters.operations import Cluster
    from rl4sys.clusters.program_calls import ProgramCall
    from rl4sys.clusters.submission import Submission

cluster = typer.Typer(
    name="cluster",
    no_args_is_help=True,
    help="Start machines in a cloud, on Kubernetes or under SLURM, run experiments there, and end them.",
    rich_markup_mode="rich",
)

Kind = Literal["gce", "ec2", "kuberay", "sky", "slurm"]
File = Annotated[Path, typer.Argument(metavar="FILE", help="A cluster file, as `rl4sys cluster init` writes it.")]
Command = Annotated[
    list[str] | None,
    typer.Argument(metavar="-- COMMAND", show_default=False, help="What to run: -- sweep my_sweep.yaml --jobs 8 …"),
]
Files = Annotated[
    Path | None,
    typer.Option(metavar="DIRECTORY", help="Copy this directory to the cluster, and run the command in it."),
]
PrintOnly = Annotated[bool, typer.Option("--print-only", help="Print files and commands, and run nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Start machines without asking for confirmation.")]


@cluster.command()
def init(
    kind: Annotated[Kind, typer.Argument(help="The cloud or scheduler that starts the machines.")],
    output: Annotated[Path | None, typer.Option(help="The file to write; by default cluster-KIND.yaml.")] = None,
    name: Annotated[str, typer.Option(help="The name of the cluster and its machines.")] = "rl4sys",
    workers: Annotated[int, typer.Option(min=1, help="Maximum number of machines for trials.")] = 2,
    cpus: Annotated[int, typer.Option(min=1, help="CPUs of each machine.")] = 8,
    machine: Annotated[str | None, typer.Option(help="Their machine type (gce, ec2), such as n2-standard-8.")] = None,
    project: Annotated[str | None, typer.Option(help="The project that is charged (gce).")] = None,
    region: Annotated[str | None, typer.Option(help="The region (gce, ec2), such as us-central1.")] = None,
    image: Annotated[str | None, typer.Option(help="The image of containers (kuberay) or machines (ec2).")] = None,
    partition: Annotated[str | None, typer.Option(help="The partition (slurm).")] = None,
    wheel: Annotated[Path | None, typer.Option(help="Install RL4Sys from this wheel, not from a release.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    print_only: PrintOnly = False,
    debug: Debug = False,
) -> None:
    """Write a commented cluster file, with the versions of Python and packages that are installed here.

    Values that only you know are marked CHANGE-ME. Beside it are written a token, which the machines ask for, and a
    constraints file.

    [bold]Examples[/]

      rl4sys cluster init gce --project my-project --workers 4

      rl4sys cluster init slurm --partition cpu --output job.sh
    """
    from rl4sys.cli.output import report, show
    from rl4sys.clusters.new_file import NewCluster, default_output, render, write_cluster_files

    path = output or default_output(kind)
    new = NewCluster(kind, name, workers, cpus, machine, project, region, image, partition, wheel)
    if print_only:
        beside = path.absolute()
        sys.stdout.write(render(new, beside.with_suffix(".token"), beside.with_name(f"{path.stem}-constraints.txt")))
        return
    for written in write_cluster_files(new, path, force=force):
        show(str(written))
    report(f"check it with: rl4sys cluster check {path}")


@cluster.command()
def check(
    file: File,
    kind: Annotated[Kind | None, typer.Option(help="The kind of cluster that the file must describe.")] = None,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Check a cluster file offline: Ray's schema, and what it lets pass.

    One line per finding: the key, what is wrong, what to do. The exit code is 1 if there are errors.

    [bold]Examples[/]

      rl4sys cluster check cluster-gce.yaml

      rl4sys cluster check cluster-ec2.yaml --kind ec2 --json
    """
    from dataclasses import asdict

    from rl4sys.cli.exit_codes import NO
    from rl4sys.cli.output import print_json, show
    from rl4sys.clusters.cluster_file import read_cluster_file
    from rl4sys.clusters.file_checks import check_cluster_file

    read = read_cluster_file(file)
    found = check_cluster_file(read, kind)
    errors = [finding for finding in found if finding.severity == "error"]
    if json:
        print_json({"file": str(file), "kind": read.kind, "findings": [asdict(finding) for finding in found]})
    else:
        for finding in found:
            show(f"{finding.severity}: {finding}")
        show(f"{file}: {len(errors)} error(s), {len(found) - len(errors)} warning(s)")
    if errors:
        raise typer.Exit(NO)


@cluster.command()
def up(file: File, yes: Yes = False, print_only: PrintOnly = False, debug: Debug = False) -> None:
    """Start the machines of a cluster. If that fails, those that started are ended.

    [bold]Examples[/]

      rl4sys cluster up cluster-gce.yaml

      rl4sys cluster up cluster-gce.yaml --print-only
    """
    from rl4sys.clusters.cluster_file import ClusterFileError

    made = _cluster(file, print_only=print_only)
    calls = made.commands.up()
    if not calls:
        raise ClusterFileError(f"{file}: a SLURM job starts its machines itself. Use `submit` or `run`.")
    if print_only:
        _print(made, calls)
        return
    _require((*calls, *made.commands.down()), made)
    _confirm(made, None, None, yes=yes)
    with _interruptible():
        made.up()


@cluster.command()
def submit(
    file: File,
    command: Command = None,
    files: Files = None,
    print_only: PrintOnly = False,
    debug: Debug = False,
) -> None:
    """Start a command on the machines of a cluster that runs, and return.

    Without --on, the command runs with --on ray --address auto.

    [bold]Examples[/]

      rl4sys cluster submit cluster-gce.yaml --files . -- sweep my_sweep.yaml --storage gs://my-bucket/runs
    """
    from rl4sys.cli.output import show

    made = _cluster(file, print_only=print_only)
    submission = _submission(made, command, files)
    calls = made.commands.submit(submission)
    if print_only:
        _print(made, calls)
        return
    _require(calls, made)
    with _interruptible():
        made.submit(submission)
    show(submission.id)


@cluster.command()
def status(file: File, print_only: PrintOnly = False, debug: Debug = False) -> None:
    """Show the machines and jobs of a cluster.

    [bold]Examples[/]

      rl4sys cluster status cluster-gce.yaml
    """
    made = _cluster(file, print_only=True)
    _do(made, made.commands.status(), print_only=print_only)


@cluster.command()
def logs(
    file: File,
    id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="What `submit` printed; by default the latest.")
    ] = None,
    print_only: PrintOnly = False,
    debug: Debug = False,
) -> None:
    """Show the output of a command on a cluster.

    [bold]Examples[/]

      rl4sys cluster logs cluster-gce.yaml
    """
    made = _cluster(file, print_only=True)
    _do(made, made.commands.logs(id), print_only=print_only)


@cluster.command()
def down(file: File, print_only: PrintOnly = False, debug: Debug = False) -> None:
    """End all machines of a cluster.

    [bold]Examples[/]

      rl4sys cluster down cluster-gce.yaml
    """
    # Also with a file that has become wrong: its machines cost.
    made = _cluster(file, print_only=True)
    if print_only:
        _print(made, made.commands.down())
        return
    _require(made.commands.down(), made)
    made.down()


@cluster.command()
def run(
    file: File,
    command: Command = None,
    files: Files = None,
    hours: Annotated[
        float, typer.Option(min=0.01, help="Hours after which the command and the machines are ended.")
    ] = 24.0,
    yes: Yes = False,
    print_only: PrintOnly = False,
    debug: Debug = False,
) -> None:
    """Start machines, run a command on them, show its output, and end the machines: also on failure and Ctrl-C.

    [bold]Examples[/]

      rl4sys cluster run cluster-ec2.yaml --files . --hours 8 -- sweep my_sweep.yaml --storage s3://my-bucket/runs

      rl4sys cluster run cluster-ec2.yaml --print-only -- train ppo_cartpole.yaml --storage s3://my-bucket/runs
    """
    from rl4sys.cli.exit_codes import SomeFailed
    from rl4sys.clusters.operations import CommandFailed
    from rl4sys.clusters.submission import count_trials_of

    made = _cluster(file, print_only=print_only)
    submission = _submission(made, command, files)
    calls = (*made.commands.up(), *made.commands.run(submission), *made.commands.down())
    if print_only:
        _print(made, calls)
        return
    _require(calls, made)
    _confirm(made, count_trials_of(submission), hours, yes=yes)
    try:
        with _interruptible():
            made.run(submission, hours * 3600)
    except CommandFailed as error:
        raise SomeFailed(f"{error} The machines were ended.") from None


def _cluster(file: Path, *, print_only: bool) -> Cluster:
    """The cluster of a file; with `print_only` findings are only reported."""
    from rl4sys.cli.output import report
    from rl4sys.clusters.cluster_file import read_cluster_file
    from rl4sys.clusters.file_checks import check_cluster_file, require_usable
    from rl4sys.clusters.operations import Cluster

    read = read_cluster_file(file)
    for finding in check_cluster_file(read) if print_only else require_usable(read):
        report(f"{finding.severity}: {finding}")
    return Cluster(read, report)


def _submission(made: Cluster, command: list[str] | None, files: Path | None) -> Submission:
    from datetime import datetime

    from rl4sys.clusters.submission import new_submission

    return new_submission(command or [], made.file.kind, files, datetime.now())


def _print(made: Cluster, calls: tuple[ProgramCall, ...]) -> None:
    from rl4sys.cli.output import report

    sys.stdout.write(f"# {made.file.path}\n{made.file.text.rstrip()}\n\n# commands\n")
    for call in calls:
        sys.stdout.write(f"{call}  # {call.purpose}\n")
    report("nothing was started.")


def _do(made: Cluster, calls: tuple[ProgramCall, ...], *, print_only: bool) -> None:
    if print_only:
        _print(made, calls)
        return
    _require(calls, made)
    with _interruptible():
        made.show(calls)


def _require(calls: tuple[ProgramCall, ...], made: Cluster) -> None:
    from rl4sys.clusters.program_calls import require_programs, require_sdk

    require_programs(calls)
    require_sdk(made.file.kind)


def _confirm(made: Cluster, trials: int | None, hours: float | None, *, yes: bool) -> None:
    """Show machines, trials and hours, and ask."""
    from rl4sys.cli.cleanup import NotConfirmed
    from rl4sys.cli.output import report
    from rl4sys.clusters.machines import machines_of

    groups = machines_of(made.file)
    for group in groups:
        report(f"machines  {group}")
    if trials is not None:
        report(f"trials    {trials}")
    if hours is None:
        report(f"hours     until you run: rl4sys cluster down {made.file.path}")
    else:
        most = sum(group.count for group in groups) * hours
        report(f"hours     at most {hours:g}, so at most {most:g} machine hours")
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotConfirmed("Machines cost: there is no terminal to ask, so give --yes to start them.")
    typer.confirm("Start these machines?", abort=True, err=True)


@contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM is like Ctrl-C, so that machines are ended; either ends the command with its exit code."""
    from rl4sys.cli.exit_codes import INTERRUPTED

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, before)

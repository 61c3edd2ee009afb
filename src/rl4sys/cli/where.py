"""Where runs train: the options that `train`, `sweep` and `tune` share, and the launcher they ask for."""

from __future__ import annotations

import importlib.util
import math
import shlex
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rl4sys.experiments.where import WhereSection
    from rl4sys.laboratory.trials.launcher import Launcher

On = Annotated[
    str | None,
    typer.Option("--on", metavar="local|ray|slurm", help="Where runs train: this machine, a Ray cluster, or SLURM."),
]
Address = Annotated[
    str | None,
    typer.Option(
        metavar="auto|HOST:PORT|URL",
        help="The Ray cluster. None: start Ray here. auto, HOST:6379: join. http://HOST:8265: submit as a Ray job.",
    ),
]
Cpus = Annotated[
    int | None,
    typer.Option(min=1, help="Cores per run; here by default an equal share of all cores, on a cluster 1."),
]
Gpus = Annotated[float | None, typer.Option(min=0, help="GPUs per run on a cluster; 0.5 lets two runs share one.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Runs at the same time.")]
Retries = Annotated[
    int | None,
    typer.Option(min=0, help="How often a run continues after its process or machine on a cluster was lost."),
]
Storage = Annotated[
    str | None,
    typer.Option(
        metavar="DIRECTORY|URL",
        help="Where runs are kept: a directory that all machines see, or s3://, gs://, file://.",
    ),
]
Detach = Annotated[
    bool, typer.Option("--detach", help="With --address http://…: return at once, do not follow the job.")
]


class RayUnavailable(RuntimeError):
    """Ray is not installed."""


def choose_place(
    section: WhereSection,
    *,
    on: str | None,
    address: str | None,
    cpus: int | None,
    gpus: float | None,
    jobs: int | None,
    retries: int | None,
    storage: str | None,
) -> WhereSection:
    """The section `where` of a config, with what the command line says."""
    from rl4sys.config import ConfigError, parse
    from rl4sys.experiments.where import WhereSection

    given = {
        "on": on,
        "address": address,
        "cpus": cpus,
        "gpus": gpus,
        "jobs": jobs,
        "retries": retries,
        "storage": storage,
    }
    values = section.model_dump() | {name: value for name, value in given.items() if value is not None}
    chosen = parse(WhereSection, values)
    if chosen.on == "slurm" and chosen.storage is not None and "://" in chosen.storage:
        raise ConfigError(
            "--on slurm keeps runs in a directory that all nodes see, such as your home; give that as --storage, or "
            "leave it out if the working directory is one"
        )
    if chosen.gpus and chosen.on == "local":
        raise ConfigError(
            f"--gpus {chosen.gpus:g} is for clusters; on this machine a run uses experiment.device. Use: "
            f"{command_on_gpus(sys.argv[1:], chosen.gpus)}"
        )
    return chosen


def command_on_gpus(arguments: Sequence[str], gpus: float) -> str:
    """The command that uses GPUs of this machine, where one with --gpus was given."""
    ranks = ["--ranks", f"{math.ceil(gpus)}"] if gpus > 1 and arguments[:1] == ["train"] else []
    section = [] if any(argument.startswith("--gpus") for argument in arguments) else ["where.gpus=0"]
    return shlex.join(["rl4sys", *without_option(arguments, "--gpus"), *section, "device=cuda", *ranks])


def without_option(arguments: Sequence[str], option: str) -> list[str]:
    """The arguments of a command without an option and its value."""
    kept: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == option:
            next(waiting, None)
        elif not argument.startswith(f"{option}="):
            kept.append(argument)
    return kept


def require_use_of_address(where: WhereSection, collection: str) -> None:
    """Refuse the address of a Ray cluster on which runs neither train nor collect."""
    from rl4sys.config import ConfigError

    if where.address is not None and where.on != "ray" and collection != "ray":
        raise ConfigError(f"--address {where.address} is that of a Ray cluster; add --on ray")


def launcher_for(where: WhereSection, count: int, jobs: int, ranks: int = 1) -> Launcher:
    """The launcher for a number of runs; `jobs` of them at a time on this machine, unless something else is asked for.

    On Ray, each of the ranks of a run is a process; elsewhere one process computes the parts of all of them.
    """
    if where.on == "ray":
        if importlib.util.find_spec("ray") is None:
            raise RayUnavailable("--on ray needs the package 'ray'. Install it with: pip install 'rl4sys[ray]'")
        from rl4sys.laboratory.trials.launcher_on_ray import RayLauncher

        return RayLauncher(where, count, ranks)
    if where.on == "slurm":
        from rl4sys.clusters.slurm_launcher import SlurmLauncher, SlurmOptions

        options = SlurmOptions(where.jobs or count, where.cpus or 1, where.gpus, where.retries)
        return SlurmLauncher(options)
    from rl4sys.laboratory.trials.local_launcher import LocalLauncher

    return LocalLauncher(min(where.jobs or jobs, count), where.cpus)


def submit_if_asked(where: WhereSection, *, detach: bool) -> bool:
    """Submit this command to a cluster as a Ray job, if its address is that of a dashboard; whether that was done."""
    from rl4sys.config import ConfigError

    if where.address is None or not where.address.startswith(("http://", "https://")):
        if detach:
            raise ConfigError("--detach needs the address of a cluster's dashboard: --address http://HOST:8265")
        return False
    if where.storage is None:
        raise ConfigError(
            "The command will run on the cluster, and so will its results be there. Give --storage, such as "
            "s3://bucket/runs, and fetch them with: rl4sys pull URL"
        )
    if importlib.util.find_spec("ray") is None:
        raise RayUnavailable("--address needs the package 'ray'. Install it with: pip install 'rl4sys[ray]'")
    from rl4sys.cli.job_on_ray import submit

    submit(where.address, sys.argv[1:], follow=not detach)
    return True


def describe_place(where: WhereSection) -> str:
    """Where runs would train and with what, for --dry-run; nothing is started for it, and no Ray imported."""
    if where.on == "local":
        return "on this machine"
    at = f" at {where.address}" if where.address is not None else ""
    gpus = f" and {where.gpus:g} GPU" if where.gpus else ""
    kept = f", kept in {where.storage}" if where.storage is not None else ""
    return f"on {where.on}{at} with {where.cpus or 1} CPU{gpus} each{kept}"


def storage_url(where: WhereSection) -> str | None:
    """The URL below which runs are kept, if they are not simply made in a directory that all machines see."""
    return where.storage if where.storage is not None and "://" in where.storage else None


def require_place(where: WhereSection, collection: str) -> None:
    """Refuse more cores than this machine has, a cluster to collect on that does not answer, and storage that cannot be
    written to, before anything is started."""
    from rl4sys.collection.cluster_address import require_cluster
    from rl4sys.config import ConfigError
    from rl4sys.cores import usable_cores

    if where.on == "local" and (where.cpus or 0) > (most := len(usable_cores())):
        raise ConfigError(f"--cpus {where.cpus}: this machine has {most} for a run; ask for fewer, or use a cluster")
    if collection == "ray":
        require_cluster(where.address)
    if (url := storage_url(where)) is not None:
        from rl4sys.storage import open_storage

        open_storage(url).require_writable()
    elif (directory := shared_directory(where)) is not None:
        try:
            _require_writable(Path(directory))
        except OSError as error:
            raise ConfigError(
                f"--storage {directory} cannot be written to: {error.strerror}. Give a directory that all machines "
                "see and that you may write to, or a URL such as s3://bucket/runs"
            ) from error


def _require_writable(directory: Path) -> None:
    """Write a file, in the directory or in what exists of the path to it, and remove it again."""
    existing = next(place for place in (directory, *directory.absolute().parents) if place.exists())
    with tempfile.TemporaryFile(dir=existing):
        pass


def shared_directory(where: WhereSection) -> str | None:
    """The directory in which runs are made because all machines see it, if there is one."""
    return where.storage if where.storage is not None and "://" not in where.storage else None


def debugged(where: WhereSection, stop: Callable[[], bool]) -> Launcher:
    """The launcher of --debug: everything in this process."""
    from rl4sys.config import ConfigError
    from rl4sys.laboratory.trials.one_process_launcher import OneProcessLauncher

    if where.on != "local":
        raise ConfigError(f"--debug runs everything in this process; leave out --on {where.on}")
    return OneProcessLauncher(stop)

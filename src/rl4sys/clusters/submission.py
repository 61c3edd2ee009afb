"""A command of RL4Sys that is to run on a cluster."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from rl4sys.clusters.cluster_file import ClusterKind

_COMMANDS = ("train", "sweep", "tune")
_COUNT = re.compile(r"(\d[\d,]*) (?:trial|run)")
_DRY_RUN_SECONDS = 120.0
_PLACE = ("--on", "--address", "--storage", "--gpus")
"""Options that say where to run, each with a value."""
_SHARED_DISK: tuple[ClusterKind, ...] = ("slurm",)
"""Kinds of clusters whose machines see the same files."""
_AUTOSCALED: tuple[ClusterKind, ...] = ("gce", "ec2", "kuberay")
"""Kinds of clusters that start workers as trials wait: at first there is a head without cores."""


class SubmissionError(ValueError):
    """A command that a cluster cannot run."""


@dataclass(frozen=True, slots=True)
class Submission:
    """A command with its name on the cluster."""

    id: str
    command: tuple[str, ...]
    """With the program: `rl4sys sweep my.yaml --on ray --address auto`."""
    files: Path | None = None
    """A directory that the command needs, copied to the cluster first."""


def new_submission(
    arguments: Sequence[str], kind: ClusterKind, files: Path | None, now: datetime, *, checked: bool = True
) -> Submission:
    """A submission of `rl4sys ARGUMENTS`; refuses what is known to fail on machines of this kind."""
    words = list(arguments[1:] if arguments[:1] == ["rl4sys"] else arguments)
    if not words or words[0] not in _COMMANDS:
        given = f"'{words[0]}'" if words else "nothing"
        raise SubmissionError(
            f"Give a command to run on the cluster after --, one of {', '.join(_COMMANDS)}; got {given}. "
            "For example: rl4sys cluster run FILE -- sweep my_sweep.yaml"
        )
    if files is not None and not files.is_dir():
        raise SubmissionError(f"--files {files}: there is no such directory.")
    if checked:
        _require_files(words, kind, files)
        _require_storage(words, kind)
    if not any(word == "--on" or word.startswith("--on=") for word in words):
        words += ["--on", "ray", "--address", "auto"]
        if kind in _AUTOSCALED and not any(word.startswith("where.autoscaling=") for word in words):
            words.append("where.autoscaling=true")
    return Submission(f"rl4sys-{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}", ("rl4sys", *words), files)


def count_trials_of(submission: Submission) -> int:
    """How many trials a command starts, found by its dry run here, which also checks its files."""
    words = _without_place(submission.command[1:])
    command = [sys.executable, "-m", "rl4sys.cli", *words, "--dry-run"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=submission.files, timeout=_DRY_RUN_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SubmissionError(f"`rl4sys {' '.join(words)} --dry-run` hangs here. Try it by itself.") from None
    if done.returncode != 0:
        said = done.stderr.strip().removeprefix("error: ") or f"exit code {done.returncode}"
        raise SubmissionError(f"The command fails here already: {said} Nothing was started.")
    counts = _COUNT.findall(done.stderr) or _COUNT.findall(done.stdout)
    return int(counts[-1].replace(",", "")) if counts else 1


def _without_place(words: Sequence[str]) -> list[str]:
    """The arguments without where to run: a dry run is the same everywhere."""
    kept: list[str] = []
    skip = False
    for word in words:
        is_value, skip = skip, word in _PLACE
        if not (is_value or skip or word.partition("=")[0] in _PLACE or word == "--detach"):
            kept.append(word)
    return kept


def _require_files(words: Sequence[str], kind: ClusterKind, files: Path | None) -> None:
    """A file that is only here must be copied."""
    if kind in _SHARED_DISK or files is not None:
        return
    for word in words[1:]:
        if "=" not in word and Path(word).is_file():
            raise SubmissionError(
                f"{word} is a file of this machine, which the cluster does not have. "
                f"Give the directory to copy: --files {Path(word).parent}"
            )


def _require_storage(words: Sequence[str], kind: ClusterKind) -> None:
    """Machines without a shared disk lose their runs when they end."""
    if kind in _SHARED_DISK or any(word.partition("=")[0] == "--storage" for word in words):
        return
    named = [Path(word) for word in words[1:] if "=" not in word and Path(word).is_file()]
    if any(re.search(r"^\s*storage:\s*\S", path.read_text("utf-8"), re.MULTILINE) for path in named):
        return
    raise SubmissionError(
        "The machines of this cluster share no disk, and end with it: runs would be lost. "
        "Name a bucket for them: --storage gs://BUCKET/PATH or s3://BUCKET/PATH"
    )

"""The directory of a run: created, described, locked and found."""

from __future__ import annotations

import datetime
import errno
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rl4sys import run_files
from rl4sys.atomic_files import publish_directory, replace_file
from rl4sys.config.module_copies import write_module_copies
from rl4sys.config.plugin_copies import plugin_texts, write_copies
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.file_lock import FileLock
from rl4sys.run_finder import RUNS, find_one

_LONGEST_NAME = 80
"""Characters of the name of a run directory: longer ones are hard to read, and some file systems refuse them."""


class RunBusy(RuntimeError):
    """Another process is writing into the run."""


class RunDamaged(ValueError):
    """A file that describes a run cannot be read."""


class NotSaved(RuntimeError):
    """The run could not be written: the disk is full or failed."""


@contextmanager
def directory_for_runs(path: Path) -> Iterator[None]:
    """A directory to make a run in; if that fails, the directory and its parents are removed if they were made here."""
    missing = [place for place in (path, *path.parents) if not place.exists()]
    path.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        for place in missing:
            # Another command may have made a run there meanwhile.
            with suppress(OSError):
                place.rmdir()
        raise


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """Paths within one run."""

    path: Path

    @classmethod
    def create(cls, config: ExperimentConfig, manifest: Mapping[str, Any], now: datetime.datetime) -> RunDirectory:
        """A new directory, named after experiment, seed and time, with its config and manifest."""
        parent = Path(config.experiment.directory)
        stem = directory_name(config.name, config.experiment.seed, now)
        parent.mkdir(parents=True, exist_ok=True)
        path = _free_place(parent, stem)
        aside = cls(path.with_name(f".{path.name}.tmp"))
        try:
            aside.describe(config, manifest)
            publish_directory(aside.path, path)
        except BaseException:
            shutil.rmtree(aside.path, ignore_errors=True)
            raise
        return cls(path)

    @property
    def config(self) -> Path:
        """The fully resolved config."""
        return self.path / run_files.CONFIG

    @property
    def manifest(self) -> Path:
        """Versions, revision, seed, threads."""
        return self.path / run_files.MANIFEST

    @property
    def metrics(self) -> Path:
        """One record per line."""
        return self.path / run_files.METRICS

    @property
    def episodes(self) -> Path:
        """One row per episode."""
        return self.path / run_files.EPISODES

    @property
    def hash_log(self) -> Path:
        """Hashes of what was collected and learned, one mark per line."""
        return self.path / run_files.HASHES

    @property
    def checkpoints(self) -> Path:
        """One directory per checkpoint."""
        return self.path / run_files.CHECKPOINTS

    @property
    def scratch(self) -> Path:
        """For files that nothing depends on when the process has ended."""
        return self.path / run_files.SCRATCH

    @property
    def policies(self) -> Path:
        """Policies that can act without the rest of the run."""
        return self.path / run_files.POLICIES

    @property
    def videos(self) -> Path:
        """Episodes that were recorded in between, if that was asked for."""
        return self.path / run_files.VIDEOS

    @property
    def result(self) -> Path:
        """How the run ended."""
        return self.path / run_files.RESULT

    @property
    def is_run(self) -> bool:
        """Whether this is a run at all, and not just some directory with a config."""
        return run_files.is_run(self.path)

    def hold(self) -> FileLock:
        """Keep other processes out until the returned lock is released or this process ends."""
        lock = FileLock.try_acquire(self.path)
        if lock is None:
            raise RunBusy(f"{self.path} is in use by another process; wait for it, or stop it first.")
        return lock

    @contextmanager
    def writing(self, step: int) -> Iterator[None]:
        """Raise `NotSaved`, with the resume command, when the disk fails within this context."""
        try:
            yield
        except OSError as error:
            advice = "Free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG) else "Repair that"
            raise NotSaved(
                f"The run could not be saved at step {step:,}: {error.strerror or error}. What was saved before "
                f"is intact. {advice}, then continue with: rl4sys resume {self.path}"
            ) from error

    def describe(self, config: ExperimentConfig, manifest: Mapping[str, Any]) -> None:
        """Write the config, copies of the user's code that it names, and the manifest."""
        values = config.model_dump(mode="json")
        replace_file(self.config, yaml.safe_dump(values, sort_keys=False, allow_unicode=True).encode())
        write_copies(self.path, plugin_texts(config.plugins))
        write_module_copies(self.path, values)
        # Last: without it, this is no run.
        self.write_manifest(manifest)

    def write_manifest(self, values: Mapping[str, Any]) -> None:
        """Keep what is needed to understand and repeat the run."""
        replace_file(self.manifest, json.dumps(values, indent=1).encode())

    def read_manifest(self) -> dict[str, Any]:
        """What `write_manifest` kept."""
        try:
            values: dict[str, Any] = json.loads(self.manifest.read_bytes())
        except ValueError as error:
            raise RunDamaged(
                f"{self.manifest} is damaged ({error}). Without it the run cannot be resumed exactly; "
                f"train it again with: rl4sys train {self.config}"
            ) from error
        return values


def find_run(text: str | Path, root: Path = RUNS) -> RunDirectory:
    """The run at a path, the only one whose name begins like this, beside that path or below `root`, or the `last`."""
    return RunDirectory(find_one(text, root))


def directory_name(name: str, seed: int, now: datetime.datetime) -> str:
    """The name of a new run: what it is, its seed and the time, in at most 80 characters with a later number.

    A long name is cut, with a hash of the whole so that two that begin alike differ.
    """
    ending = f"-seed{seed}-{now:%Y%m%d-%H%M%S}"
    room = _LONGEST_NAME - len(ending) - len("-999")
    if len(name) > room:
        digest = hashlib.sha256(name.encode()).hexdigest()[:6]
        name = f"{name[: room - len(digest) - 1].rstrip('-_.')}-{digest}"
    return f"{name}{ending}"


def _free_place(parent: Path, stem: str) -> Path:
    """A free name, reserved by its temporary directory: two runs may start in the same second."""
    for attempt in range(1, 1_000):
        path = parent / (stem if attempt == 1 else f"{stem}-{attempt}")
        aside = path.with_name(f".{path.name}.tmp")
        try:
            aside.mkdir()
        except FileExistsError:
            continue
        if not path.exists():
            return path
        aside.rmdir()
    raise FileExistsError(f"There is no free name for a run like {parent / stem}; remove old runs.")

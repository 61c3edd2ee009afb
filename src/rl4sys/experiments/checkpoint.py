"""Checkpoints: a state as safetensors and JSON, checked by hashes, there wholly or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from rl4sys.atomic_files import publish_directory, replace_link, write_durably
from rl4sys.experiments.replay_chunks import CheckpointDamaged, ReplayChunks, ReplayRows, checks_of
from rl4sys.state import State, join, split

_FORMAT = 1


class NoCheckpoint(FileNotFoundError):
    """There is no checkpoint that could be loaded."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The newest good checkpoint, and what had to be passed over to find it."""

    step: int
    state: State
    chunks: tuple[Mapping[str, Any], ...]
    skipped: tuple[str, ...]


class Checkpoints:
    """The checkpoints of one run, oldest to newest, with `latest` and `best` pointing into them."""

    def __init__(self, directory: Path, keep: int) -> None:
        self.directory = directory
        self._keep = keep
        self._replay = ReplayChunks(directory.parent / "replay")

    def steps(self) -> list[int]:
        """The steps at which there are checkpoints, in order."""
        if not self.directory.is_dir():
            return []
        return sorted(int(path.name) for path in self.directory.iterdir() if path.name.isdigit())

    def save(self, step: int, state: State, replay: ReplayRows | None, *, best: bool = False) -> Path:
        """Write a checkpoint; the replay buffer adds only the rows that no earlier one has written."""
        self.directory.mkdir(parents=True, exist_ok=True)
        chunks = self._replay.append(replay) if replay is not None else []
        tree, arrays = split(state)
        files = {
            "state.json": json.dumps(tree).encode(),
            "arrays.safetensors": save_tensors({name: np.asarray(array, order="C") for name, array in arrays.items()}),
        }
        manifest = {
            "format": _FORMAT,
            "step": step,
            "files": {name: checks_of(data) for name, data in files.items()},
            "replay": chunks,
        }
        aside, final = self.directory / f".{step:012d}.tmp", self.directory / f"{step:012d}"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        try:
            for name, data in files.items():
                write_durably(aside / name, data)
            write_durably(aside / "manifest.json", json.dumps(manifest, indent=1).encode())
            # Saving again at the same step: the old one goes only when the new one is complete.
            shutil.rmtree(final, ignore_errors=True)
            publish_directory(aside, final)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        replace_link(self.directory / "latest", final.name)
        if best:
            replace_link(self.directory / "best", final.name)
        self._prune()
        return final

    def load(self, step: int | None = None) -> Loaded:
        """The newest checkpoint that verifies, or the one of a given step."""
        skipped: list[str] = []
        candidates = [step] if step is not None else list(reversed(self.steps()))
        for candidate in candidates:
            try:
                state, chunks = self._read(self.directory / f"{candidate:012d}")
            except CheckpointDamaged as error:
                skipped.append(str(error))
                continue
            return Loaded(candidate, state, chunks, tuple(skipped))
        details = "".join(f"\n  {reason}" for reason in skipped)
        raise NoCheckpoint(
            f"No usable checkpoint in {self.directory}.{details}\nStart the run anew with its config.yaml."
        )

    def best(self) -> int | None:
        """The step of the best checkpoint, if one was marked."""
        link = self.directory / "best"
        if not link.is_symlink() or not link.readlink().name.isdigit():
            return None
        return int(link.readlink().name)

    def replay_rows(self, loaded: Loaded) -> Iterator[tuple[int, Mapping[str, Any]]]:
        """The rows of the replay buffer that belong to a loaded checkpoint: first id and columns, chunk by chunk."""
        return self._replay.read(loaded.chunks)

    def _read(self, path: Path) -> tuple[State, tuple[Mapping[str, Any], ...]]:
        try:
            manifest = json.loads((path / "manifest.json").read_bytes())
            files = {name: (path / name).read_bytes() for name in manifest["files"]}
            chunks = tuple(manifest["replay"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointDamaged(f"{path.name}: cannot be read ({error})") from error
        for name, data in files.items():
            if checks_of(data) != manifest["files"][name]:
                raise CheckpointDamaged(f"{path.name}: {name} is not what was written (length or SHA-256 differs)")
        self._replay.verify(chunks, path.name)
        return join(json.loads(files["state.json"]), load_tensors(files["arrays.safetensors"])), chunks

    def _prune(self) -> None:
        steps = self.steps()
        kept = set(steps[-self._keep :])
        best = self.best()
        if best is not None:
            kept.add(best)
        for step in steps:
            if step not in kept:
                shutil.rmtree(self.directory / f"{step:012d}", ignore_errors=True)
        self._replay.prune(self._manifests(kept))

    def _manifests(self, steps: set[int]) -> Iterator[list[Mapping[str, Any]]]:
        for step in steps:
            try:
                yield json.loads((self.directory / f"{step:012d}" / "manifest.json").read_bytes())["replay"]
            except (OSError, ValueError, KeyError):
                continue

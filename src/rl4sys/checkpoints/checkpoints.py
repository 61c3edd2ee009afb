"""The checkpoints of a run: each complete or absent; the newest good one is always found."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from rl4sys.atomic_files import make_directory, publish_directory, replace_link
from rl4sys.checkpoints.files import (
    CheckpointContents,
    CheckpointDamaged,
    Chunk,
    read_checkpoint,
    read_manifest,
    verify_files,
    write_checkpoint,
)
from rl4sys.checkpoints.replay_chunks import ReplayChunks, ReplayRows
from rl4sys.experience import Array
from rl4sys.failpoints import failpoint
from rl4sys.state import State


class NoCheckpoint(FileNotFoundError):
    """There is no checkpoint that could be loaded."""


@dataclass(frozen=True, slots=True)
class LoadedCheckpoint:
    """The newest good checkpoint, and the damaged ones that were skipped."""

    step: int
    state: State
    chunks: tuple[Chunk, ...]
    skipped: tuple[str, ...]


class Checkpoints:
    """The checkpoints of one run, oldest to newest, with `latest` and `best` pointing into them."""

    def __init__(self, directory: Path, keep: int, advice: str | None = None) -> None:
        """`advice` says what to do when no checkpoint can be loaded; without it, to train again."""
        self.directory = directory
        self._keep = keep
        self._advice = advice or f"Train it again with: rl4sys train {directory.parent / 'config.yaml'}"
        self._replay = ReplayChunks(directory.parent / "replay")

    def steps(self) -> list[int]:
        """The steps at which there are checkpoints, in order."""
        if not self.directory.is_dir():
            return []
        return sorted(int(path.name) for path in self.directory.iterdir() if path.name.isdigit())

    def save(self, step: int, state: State, replay: ReplayRows | None, *, best: bool = False) -> Path:
        """Write a checkpoint; the replay buffer adds only the rows that no earlier one has written."""
        failpoint("before checkpoint")
        make_directory(self.directory)
        chunks = self._replay.append(replay) if replay is not None else ()
        failpoint("after replay rows")
        final = self._place(step)
        aside = final.with_name(f".{final.name}.tmp")
        shutil.rmtree(aside, ignore_errors=True)
        try:
            aside.mkdir()
            write_checkpoint(aside, CheckpointContents(step, state, chunks))
            failpoint("after checkpoint files")
            publish_directory(aside, final)
        except BaseException:
            shutil.rmtree(aside, ignore_errors=True)
            raise
        replace_link(self.directory / "latest", final.name)
        if best:
            replace_link(self.directory / "best", final.name)
        failpoint("before checkpoint prune")
        self._prune(step)
        failpoint("after checkpoint prune")
        return final

    def adopt(self, step: int, aside: Path, fresh: Collection[str]) -> None:
        """Take a checkpoint that another machine wrote, from a directory beside its place, if every byte arrived.

        Its replayed rows are in place; `fresh` are the chunks that came with it. Raises `CheckpointDamaged`.
        """
        chunks = verify_files(aside)
        self._replay.require_present(chunks, aside.name)
        self._replay.verify([chunk for chunk in chunks if chunk["file"] in fresh], aside.name)
        final = self._place(step)
        publish_directory(aside, final)
        replace_link(self.directory / "latest", final.name)
        self._prune(step)

    def load(self, step: int | None = None) -> LoadedCheckpoint:
        """The newest checkpoint that verifies, its replayed rows included; or the one of a given step."""
        return self._first_good([step] if step is not None else self.steps()[::-1], with_replay=True)

    def load_policy(self, step: int | None = None) -> LoadedCheckpoint:
        """The same without a look at replayed rows, which acting does not need; a given step is only preferred."""
        newest_first = self.steps()[::-1]
        preferred = [step] if step is not None else []
        return self._first_good([*preferred, *(s for s in newest_first if s not in preferred)], with_replay=False)

    def fault(self, step: int) -> str | None:
        """What is wrong with the checkpoint of a step or its replayed rows; None if every byte is as it was written."""
        place = self._place(step)
        try:
            self._replay.verify(verify_files(place), place.name)
        except CheckpointDamaged as error:
            return str(error)
        return None

    def mark_best(self, step: int) -> None:
        """Let `best` point to the checkpoint of a step, if there is one."""
        if self._place(step).is_dir() and self.best() != step:
            replace_link(self.directory / "best", self._place(step).name)

    def written(self, step: int) -> float:
        """When the checkpoint of a step was written, in seconds since 1970."""
        return self._place(step).stat().st_mtime

    def size(self, step: int) -> int:
        """The bytes of the checkpoint of a step, without replayed rows."""
        return sum(path.stat().st_size for path in self._place(step).iterdir())

    def best(self) -> int | None:
        """The step of the best checkpoint, if one was marked."""
        link = self.directory / "best"
        if not link.is_symlink() or not link.readlink().name.isdigit():
            return None
        return int(link.readlink().name)

    def replay_rows(self, loaded: LoadedCheckpoint) -> Iterator[tuple[int, Mapping[str, Array]]]:
        """The rows of the replay buffer that belong to a loaded checkpoint: first id and columns, chunk by chunk."""
        return self._replay.read(loaded.chunks)

    def tidy(self) -> None:
        """Remove what a kill left half-written; only the process that holds the run may do so."""
        for path in self.directory.glob(".*.old.tmp"):
            final = path.with_name(path.name.removeprefix(".").removesuffix(".old.tmp"))
            if not final.exists():
                # Killed between the two renames of a second save at this step.
                path.rename(final)
        for path in self.directory.glob(".*.tmp"):
            if path.is_symlink():
                path.unlink()
            else:
                shutil.rmtree(path, ignore_errors=True)
        self._replay.tidy()

    def _place(self, step: int) -> Path:
        return self.directory / f"{step:012d}"

    def _first_good(self, candidates: list[int], *, with_replay: bool) -> LoadedCheckpoint:
        skipped: list[str] = []
        for candidate in candidates:
            try:
                contents = read_checkpoint(self._place(candidate))
                if with_replay:
                    self._replay.verify(contents.chunks, self._place(candidate).name)
            except CheckpointDamaged as error:
                skipped.append(str(error))
                continue
            return LoadedCheckpoint(candidate, contents.state, contents.chunks, tuple(skipped))
        details = "".join(f"\n  {reason}" for reason in skipped)
        raise NoCheckpoint(f"No usable checkpoint in {self.directory}.{details}\n{self._advice}")

    def _prune(self, newest: int) -> None:
        """Keep the newest and the best. Checkpoints of later steps belong to an abandoned history."""
        steps = self.steps()
        kept = set([step for step in steps if step <= newest][-self._keep :])
        best = self.best()
        if best is not None and best <= newest:
            kept.add(best)
        elif best is not None:
            (self.directory / "best").unlink()
        for step in steps:
            if step not in kept:
                shutil.rmtree(self._place(step), ignore_errors=True)
        self._replay.prune(self._chunks(kept))

    def _chunks(self, steps: set[int]) -> Iterator[tuple[Chunk, ...]]:
        for step in steps:
            try:
                yield read_manifest(self._place(step))[2]
            except CheckpointDamaged:
                continue

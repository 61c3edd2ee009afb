"""Repeats a run and checks whether the repetition is equal, bit for bit."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from rl4sys.checkpoints import Checkpoints
from rl4sys.experiments import ExperimentConfig, Logger, Run, RunDirectory, load_experiment
from rl4sys.experiments.hash_log import read_hash_log
from rl4sys.experiments.loggers.section import LoggingSection
from rl4sys.experiments.metrics import read_metrics
from rl4sys.laboratory.verification.causes import current_manifest, likely_causes
from rl4sys.laboratory.verification.differences import Difference, compare_runs, entries_differ
from rl4sys.run_files import MANIFEST, REPLAY

LoggersFor = Callable[[Run], Sequence[Logger]]
"""Returns loggers that show the progress of a repetition."""


_DECISIVE = ("stop", "rollback")
"""Actions of alerts that change what a run learns."""


class NothingToVerify(ValueError):
    """The run lacks the steps, records or checkpoint to verify."""


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """Whether two runs are equal, and if not, where and why they differ."""

    run: Path
    first: int
    """The first step of the comparison."""
    last: int
    """The last step of the comparison."""
    marks: int
    """Entries of the hash log that were compared."""
    records: int
    """Metric records that were compared."""
    difference: Difference | None
    causes: tuple[str, ...] = ()
    """Likely causes, the likeliest first; empty if there is no difference."""
    remarks: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is equal, bit for bit."""
        return self.difference is None

    def json_values(self) -> dict[str, Any]:
        """The result for `--json`."""
        return {
            "run": str(self.run),
            "equal": self.equal,
            "first_step": self.first,
            "last_step": self.last,
            "marks": self.marks,
            "records": self.records,
            "difference": self.difference.json_values() if self.difference else None,
            "causes": list(self.causes),
            "remarks": list(self.remarks),
        }


def verify(
    directory: RunDirectory, start: int | None, steps: int | None, loggers: LoggersFor = lambda run: ()
) -> VerificationResult:
    """Repeat a run from its first step, or from the checkpoint at `start`, for `steps` or to its end."""
    was = directory.read_manifest()
    _require_repeatable(directory, was, start)
    with scratch_directory() as scratch:
        if start is None:
            run = Run.create(without_loggers(recorded_config(directory), scratch))
        else:
            run = Run.resume(_copied(directory, scratch, start), step=start)
        with run:
            first, now = run.steps, current_manifest(run, load_experiment(directory.config).digest())
            until = _until(directory, first, steps)
            repeated = run.directory.path
            divergence = _Divergence(directory.hash_log, run.directory.hash_log)
            run.train(loggers(run), stop=lambda: run.steps >= until or divergence.is_seen())
        compared = compare_runs(directory.path, repeated, first, until)
    difference = compared.difference
    if difference is None and not compared.records and compared.marks < 2:
        raise NothingToVerify(
            f"Nothing was recorded between step {first:,} and step {until:,} of {directory.path}; "
            f"choose --steps of at least training.log_frequency, {run.config.training.log_frequency:,}."
        )
    remarks = [] if compared.marks else ["the run has no hash log: only metrics were compared"]
    return VerificationResult(
        run=directory.path,
        first=first,
        last=compared.until,
        marks=compared.marks,
        records=compared.records,
        difference=difference,
        causes=likely_causes(was, now, difference) if difference else (),
        remarks=tuple(remarks),
    )


def _require_repeatable(directory: RunDirectory, manifest: Mapping[str, Any], start: int | None) -> None:
    """Refuse to repeat from its first step what began with other weights or with other settings."""
    changed = max((change["step"] for change in manifest.get("changes", ())), default=-1)
    if start is None and "parent" in manifest:
        raise NothingToVerify(f"{directory.path} began with weights of {manifest['parent']['source']}; give --from.")
    if (start or 0) < changed:
        raise NothingToVerify(
            f"The settings of {directory.path} changed at step {changed:,}; verify it from there on, with --from."
        )


def checkpoint_step(directory: RunDirectory, text: str) -> int:
    """The step of a checkpoint given as `latest`, `best`, a step or a path."""
    checkpoints = Checkpoints(directory.checkpoints, keep=1)
    known = _whole_steps(directory, checkpoints)
    name = Path(text).name
    wanted = {"latest": known[-1] if known else None, "best": checkpoints.best()}.get(name)
    if wanted is None and name.replace("_", "").isdigit():
        wanted = int(name)
    if wanted not in known:
        there = f"it has: {', '.join(map(str, known))}." if known else "it has none: leave --from out."
        raise NothingToVerify(f"{directory.path} has no checkpoint '{text}'; {there}")
    return int(wanted or 0)


def _whole_steps(directory: RunDirectory, checkpoints: Checkpoints) -> list[int]:
    """The steps of checkpoints that `cleanup` has not emptied."""
    return [step for step in checkpoints.steps() if (directory.checkpoints / f"{step:012d}/{MANIFEST}").is_file()]


class _Divergence:
    """Reads the hash log of a repetition as it grows, so that it can stop at the first difference."""

    def __init__(self, recorded: Path, repeated: Path) -> None:
        self._recorded = {entry.step: entry for entry in read_hash_log(recorded)}
        self._repeated, self._size = repeated, 0

    def is_seen(self) -> bool:
        """Whether an entry differs from the recorded one."""
        size = self._repeated.stat().st_size
        if size == self._size:
            return False
        self._size = size
        return any(
            entry.step in self._recorded and entries_differ(self._recorded[entry.step], entry)
            for entry in read_hash_log(self._repeated)
        )


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A temporary directory for runs."""
    with tempfile.TemporaryDirectory(prefix="rl4sys-verify-") as directory:
        yield Path(directory)


def recorded_config(directory: RunDirectory) -> ExperimentConfig:
    """The config of a run with the threads and the device of then, which `auto` might choose differently now."""
    was = directory.read_manifest()
    return load_experiment(directory.config, {"experiment.threads": was["threads"], "experiment.device": was["device"]})


def without_loggers(config: ExperimentConfig, scratch: Path) -> ExperimentConfig:
    """The config in another directory, without loggers, videos and notifications."""
    alerts = (
        alert.model_copy(update={"do": tuple(action for action in alert.do if action in _DECISIVE), "notify": ()})
        for alert in config.alerts
    )
    return config.model_copy(
        update={
            "experiment": config.experiment.model_copy(update={"directory": str(scratch)}),
            "logging": LoggingSection(terminal=False, tensorboard=False),
            "training": config.training.model_copy(update={"video_frequency": 0}),
            "alerts": tuple(alert for alert in alerts if alert.do),
        }
    )


def _copied(directory: RunDirectory, scratch: Path, step: int) -> RunDirectory:
    """A copy of what resuming at a checkpoint needs: files that are only read are linked."""
    place = RunDirectory(scratch / directory.path.name)
    place.path.mkdir()
    for path in (directory.config, directory.manifest, directory.metrics, directory.hash_log):
        if path.is_file():
            shutil.copyfile(path, place.path / path.name)
    values = without_loggers(load_experiment(place.config), scratch).model_dump(mode="json")
    place.config.write_text(yaml.safe_dump(values, sort_keys=False, allow_unicode=True), encoding="utf-8")
    checkpoint = f"{step:012d}"
    _link(directory.checkpoints / checkpoint, place.checkpoints / checkpoint)
    _link(directory.path / REPLAY, place.path / REPLAY)
    return place


def _link(source: Path, target: Path) -> None:
    target.mkdir(parents=True)
    for path in source.iterdir() if source.is_dir() else ():
        (target / path.name).symlink_to(path.resolve())


def _until(directory: RunDirectory, first: int, steps: int | None) -> int:
    """The last step to compare: at most `steps` more, and not beyond the last record of the run."""
    recorded = [record["step"] for record in read_metrics(directory.metrics)]
    if not recorded or recorded[-1] <= first:
        earlier = [step for step in _whole_steps(directory, Checkpoints(directory.checkpoints, keep=1)) if step < first]
        hint = f" Choose an earlier one: --from {' or '.join(map(str, earlier))}." if earlier else ""
        raise NothingToVerify(f"{directory.path} has no records after step {first:,} to compare with.{hint}")
    last = int(recorded[-1])
    return last if steps is None else min(last, first + steps)

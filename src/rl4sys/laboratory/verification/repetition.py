"""Repeats a run and says whether it comes out the same; interrupts one and says whether it goes on the same."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
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
from rl4sys.laboratory.verification.causes import facts_now, likely_causes
from rl4sys.laboratory.verification.differences import Difference, compare_runs, marks_differ
from rl4sys.run_files import MANIFEST, REPLAY

Watch = Callable[[Run], Sequence[Logger]]
"""Loggers for a run that goes on behind the scenes."""


_DECIDING = ("stop", "rollback")
"""What an alert may do that the course of a run depends on."""


class NothingToVerify(ValueError):
    """The run has no steps, records or checkpoint of what was asked for."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two runs are the same, and why not."""

    run: Path
    first: int
    """The step that the comparison began at."""
    last: int
    """The last step that was compared."""
    marks: int
    """Hashes of trajectory and weights that were compared."""
    records: int
    """Records of metrics that were compared."""
    difference: Difference | None
    causes: tuple[str, ...] = ()
    """Likely ones, the likeliest first; empty if there is no difference."""
    remarks: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether everything that was compared is the same to the bit."""
        return self.difference is None

    def facts(self) -> dict[str, Any]:
        """The verdict for scripts."""
        return {
            "run": str(self.run),
            "equal": self.equal,
            "first_step": self.first,
            "last_step": self.last,
            "marks": self.marks,
            "records": self.records,
            "difference": self.difference.facts() if self.difference else None,
            "causes": list(self.causes),
            "remarks": list(self.remarks),
        }


def verify(directory: RunDirectory, start: int | None, steps: int | None, watch: Watch = lambda run: ()) -> Verdict:
    """Repeat a run from its first step, or from the checkpoint of `start`, for `steps` or as far as it came."""
    was = directory.read_manifest()
    with scratch_directory() as scratch:
        if start is None:
            run = Run.create(quiet(as_it_was(directory), scratch))
        else:
            run = Run.resume(_copied(directory, scratch, start), step=start)
        with run:
            first, now = run.steps, facts_now(run, load_experiment(directory.config).digest())
            until = _until(directory, first, steps)
            repeated = run.directory.path
            parting = _Parting(directory.hash_log, run.directory.hash_log)
            run.train(watch(run), stop=lambda: run.steps >= until or parting.seen())
        agreement = compare_runs(directory.path, repeated, first, until)
    difference = agreement.difference
    if difference is None and not agreement.records and agreement.marks < 2:
        raise NothingToVerify(
            f"Nothing was recorded between step {first:,} and step {until:,} of {directory.path}; "
            f"choose --steps of at least training.log_frequency, {run.config.training.log_frequency:,}."
        )
    remarks = [] if agreement.marks else ["the run has no hashes: only metrics were compared"]
    return Verdict(
        run=directory.path,
        first=first,
        last=agreement.until,
        marks=agreement.marks,
        records=agreement.records,
        difference=difference,
        causes=likely_causes(was, now, difference) if difference else (),
        remarks=tuple(remarks),
    )


def checkpoint_step(directory: RunDirectory, text: str) -> int:
    """The step of the checkpoint that is meant: `latest`, `best`, a step, or a path."""
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


class _Parting:
    """Looks at the marks of a repetition as they come, so that it need not go on when it has parted."""

    def __init__(self, recorded: Path, repeated: Path) -> None:
        self._recorded = {mark.step: mark for mark in read_hash_log(recorded)}
        self._repeated, self._size = repeated, 0

    def seen(self) -> bool:
        """Whether a mark differs from the recorded one."""
        size = self._repeated.stat().st_size
        if size == self._size:
            return False
        self._size = size
        return any(
            mark.step in self._recorded and marks_differ(self._recorded[mark.step], mark)
            for mark in read_hash_log(self._repeated)
        )


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A place for runs that nobody keeps."""
    with tempfile.TemporaryDirectory(prefix="rl4sys-verify-") as directory:
        yield Path(directory)


def as_it_was(directory: RunDirectory) -> ExperimentConfig:
    """The config of a run with what was found out at its start, which the machine might choose otherwise now."""
    was = directory.read_manifest()
    return load_experiment(directory.config, {"experiment.threads": was["threads"], "experiment.device": was["device"]})


def quiet(config: ExperimentConfig, scratch: Path) -> ExperimentConfig:
    """The config in another place, without what only watches: nobody is to be told of this run."""
    alerts = (
        alert.model_copy(update={"do": tuple(action for action in alert.do if action in _DECIDING), "notify": ()})
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
    """What resuming at a checkpoint needs, in another place: what is only read is linked, what is cut is copied."""
    place = RunDirectory(scratch / directory.path.name)
    place.path.mkdir()
    for path in (directory.config, directory.manifest, directory.metrics, directory.hash_log):
        if path.is_file():
            shutil.copyfile(path, place.path / path.name)
    values = quiet(load_experiment(place.config), scratch).model_dump(mode="json")
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
    """The last step to compare: as many as were asked for, but not more than the run has recorded."""
    recorded = [record["step"] for record in read_metrics(directory.metrics)]
    if not recorded or recorded[-1] <= first:
        earlier = [step for step in _whole_steps(directory, Checkpoints(directory.checkpoints, keep=1)) if step < first]
        hint = f" Choose an earlier one: --from {' or '.join(map(str, earlier))}." if earlier else ""
        raise NothingToVerify(
            f"{directory.path} has recorded nothing after step {first:,} that could be compared.{hint}"
        )
    last = int(recorded[-1])
    return last if steps is None else min(last, first + steps)

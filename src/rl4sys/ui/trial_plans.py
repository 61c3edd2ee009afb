"""Sweeps and studies in the directories of runs, read from the files that `rl4sys sweep` and `rl4sys tune` keep."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from rl4sys.laboratory.run_index.filters import RunFilter
from rl4sys.laboratory.run_index.records import RunRecord, Status
from rl4sys.laboratory.run_index.training_process import is_held
from rl4sys.laboratory.trials.names import label
from rl4sys.run_files import read_json
from rl4sys.ui.run_library import RunLibrary, UnknownRun

SWEEP, SUMMARY = "sweep.yaml", "summary.json"
_JOURNAL = "journal.log"
"""The same name as in `laboratory.studies.study_summary`, which imports Optuna."""


class StudyUnreadable(RuntimeError):
    """A sweep or study whose files cannot be read, or cannot be read here."""


@dataclass(frozen=True, slots=True)
class PlanTrial:
    """A trial as the pages show it."""

    name: str
    status: str
    score: float | None
    steps: int
    values: Mapping[str, Any]
    cause: str | None
    run: str | None
    """The id of its run, or of the first of several."""
    origin: str | None = None
    """In a population: which trial it is a copy of, and at which step it was copied."""

    @property
    def label(self) -> str:
        """Its values as text."""
        return label(self.values)


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """A sweep or a study with its trials so far."""

    kind: Literal["sweep", "study"]
    id: str
    wanted: int | None
    """Trials that it should have; None if that is not known."""
    score: str
    trials: tuple[PlanTrial, ...]
    configurations: Sequence[Mapping[str, Any]]
    """Of a sweep: configurations over their seeds, the best first."""
    importances: Mapping[str, float]
    """Of a study: the importance of each setting for the score."""
    best_config: str | None
    summary: Mapping[str, Any]
    """What the command prints with `--json`."""

    @property
    def counts(self) -> dict[str, int]:
        """How many trials have each status, the trials that were not started included."""
        counts: dict[str, int] = {}
        for trial in self.trials:
            counts[trial.status] = counts.get(trial.status, 0) + 1
        if self.wanted is not None and self.wanted > len(self.trials):
            counts["waiting"] = counts.get("waiting", 0) + self.wanted - len(self.trials)
        return counts

    @property
    def ended(self) -> int:
        """Trials that will not change any more."""
        return sum(trial.status in ("finished", "given up", "failed") for trial in self.trials)

    @property
    def total(self) -> int:
        """Trials in all."""
        return max(self.wanted or 0, len(self.trials))


class TrialPlans:
    """Finds and reads sweeps and studies; a journal that has not changed is not read again."""

    def __init__(self, library: RunLibrary) -> None:
        self._library = library
        self._studies: dict[Path, tuple[tuple[int, int], Mapping[str, Any], int | None]] = {}

    def find(self, name: str) -> list[tuple[Literal["sweep", "study"], str]]:
        """The kinds and ids of all in a directory of runs: above a run that is not at the top, or beside the runs."""
        root = self._library.root(name)
        nested = self._library.matching(name, RunFilter("instr(id, '/') > 0"), "created DESC, id")
        above = [Path(record.id).parents for record in nested]
        ids = dict.fromkeys(path.as_posix() for parents in above for path in parents if path.name)
        # A study may have no run yet.
        beside = sorted(path.parent.name for path in root.glob(f"*/{_JOURNAL}"))
        found: list[tuple[Literal["sweep", "study"], str]] = []
        for id_ in dict.fromkeys((*ids, *beside)):
            kind = _kind(root / id_)
            if kind is not None:
                found.append((kind, id_))
        return found

    def read(self, name: str, id_: str) -> TrialPlan:
        """One of them, with the current status of its trials."""
        root = self._library.root(name)
        parts = Path(id_).parts
        kind = None if ".." in parts or Path(id_).is_absolute() or not parts else _kind(root / id_)
        if kind is None:
            raise UnknownRun(f"There is no sweep or study '{id_}' in {root}; it may have been removed.")
        below = RunFilter("substr(id, 1, ?) = ?", (float(len(id_) + 1), f"{id_}/"))
        records = self._library.matching(name, below, "created, id")
        return self._sweep(root, id_, records) if kind == "sweep" else self._study(root, id_, records)

    def _sweep(self, root: Path, id_: str, records: Sequence[RunRecord]) -> TrialPlan:
        try:
            summary = read_json(root / id_ / SUMMARY)
            by_name = {Path(record.id).name: record for record in records}
            score = summary["score"]
            trials = tuple(_sweep_trial(values, by_name, score) for values in summary["trials"])
            configurations = tuple(summary["configurations"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise StudyUnreadable(f"{root / id_ / SUMMARY} cannot be read ({error!r}); run the sweep again.") from None
        return TrialPlan("sweep", id_, len(trials), f"{score} return", trials, configurations, {}, None, summary)

    def _study(self, root: Path, id_: str, records: Sequence[RunRecord]) -> TrialPlan:
        summary, wanted = self._read_journal(root / id_, root)
        first: dict[str, RunRecord] = {}
        for record in records:
            first.setdefault(record.id.removeprefix(f"{id_}/").partition("/")[0], record)
        is_driven = is_held(root / id_)
        trials = tuple(
            _study_trial(values, first.get(f"trial-{values['number']:04d}"), is_driven=is_driven)
            for values in summary["trials"]
        )
        return TrialPlan(
            "study", id_, wanted, "return", trials, (), summary["importances"], summary["best_config"], summary
        )

    def _read_journal(self, place: Path, root: Path) -> tuple[Mapping[str, Any], int | None]:
        if importlib.util.find_spec("optuna") is None:
            raise StudyUnreadable("Studies need the package 'optuna'. Install it with: pip install 'rl4sys[tune]'")
        from rl4sys.laboratory.studies.study_summary import TRIALS, stored_study, summary_of

        try:
            status = (place / _JOURNAL).stat()
            stamp = (status.st_mtime_ns, status.st_size)
            if place not in self._studies or self._studies[place][0] != stamp:
                study = stored_study(place)
                # As the command prints it: lists and not tuples.
                summary = json.loads(json.dumps(asdict(summary_of(study, place.name, place))))
                self._studies[place] = (stamp, summary, study.user_attrs.get(TRIALS))
        except (OSError, ValueError, KeyError) as error:
            raise StudyUnreadable(f"{place / _JOURNAL} cannot be read ({error}).") from None
        return self._studies[place][1:]


def _kind(place: Path) -> Literal["sweep", "study"] | None:
    if (place / _JOURNAL).is_file():
        return "study"
    return "sweep" if (place / SWEEP).is_file() and (place / SUMMARY).is_file() else None


def _sweep_trial(values: Mapping[str, Any], records: Mapping[str, RunRecord], score: str) -> PlanTrial:
    record = records.get(Path(values["run"]).name) if values["run"] else None
    status, steps, reached = values["status"], values["steps"], values[score]
    if record is not None and status != "finished":
        # The summary was written when the last trial ended; the index knows more about those that train.
        status = "running" if record.status is Status.RUNNING else status
        steps, reached = record.steps, record.last if score == "last" else record.best
    changes = {**values["changes"], "seed": values["seed"]}
    return PlanTrial(values["key"], status, reached, steps, changes, values["cause"], record.id if record else None)


def _study_trial(values: Mapping[str, Any], record: RunRecord | None, *, is_driven: bool) -> PlanTrial:
    is_running = is_driven and values["status"] == "interrupted"
    return PlanTrial(
        str(values["number"]),
        "running" if is_running else values["status"],
        values["score"],
        values["steps"],
        values["values"],
        values["cause"],
        record.id if record else None,
        None if values["parent"] is None else f"a copy of {values['parent']} at step {values['from_step']:,}",
    )

"""`rl4sys.runs` and `rl4sys.load`: runs and policies that were trained before, for Python."""

from __future__ import annotations

import csv
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rl4sys.experiments.metrics import metrics_table
from rl4sys.experiments.policies.acting_policy import ActingPolicy
from rl4sys.experiments.policies.stored_policy import stored_policy
from rl4sys.laboratory.run_index.filters import parse_filters, parse_order
from rl4sys.laboratory.run_index.index import Query, open_index
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.laboratory.run_index.run_values import is_value_key, select_by_values, split_conditions
from rl4sys.run_files import EPISODES, METRICS, final_metrics, read_config
from rl4sys.run_finder import RUNS


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A run on the disk: its settings, its progress and its results."""

    path: Path
    record: RunRecord
    """Its status, seed, steps and returns, as `rl4sys list` shows them."""

    def __repr__(self) -> str:
        best = "–" if self.record.best is None else f"{self.record.best:.1f}"
        steps = f"{self.record.steps:,} of {self.record.total:,} steps"
        return f"<TrainedRun {self.record.id}: {self.record.status}, {steps}, best {best}>"

    @property
    def settings(self) -> Mapping[str, Any]:
        """Its resolved config."""
        return read_config(self.path)

    @property
    def final(self) -> dict[str, float]:
        """The last value of every metric."""
        return final_metrics(self.path)

    def metrics(self) -> Any:
        """Its metrics as columns: a pandas DataFrame if pandas is installed, and otherwise a dict of arrays."""
        return metrics_table(self.path / METRICS)

    def episodes(self) -> Any:
        """The rows of `episodes.csv`: a pandas DataFrame if pandas is installed, and otherwise a list of dicts."""
        if importlib.util.find_spec("pandas") is not None:
            return importlib.import_module("pandas").read_csv(self.path / EPISODES)
        with (self.path / EPISODES).open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def policy(self, *, best: bool = True, seed: int = 0) -> ActingPolicy:
        """Its best or newest policy, to act with."""
        return load(self, best=best, seed=seed)


def runs(*conditions: str, sort: str = "time", root: str | Path = RUNS) -> list[TrainedRun]:
    """The runs that meet all conditions, such as `"algorithm=ppo"`, `"best>400"` and `"algorithm.lr<1e-3"`.

    Conditions and orders are those of `rl4sys list`.
    """
    place = Path(root)
    fields, values = split_conditions(conditions)
    by_value = sort if is_value_key(sort) else None
    with open_index(place) as index:
        records = index.select(Query(parse_filters(fields), parse_order("time" if by_value else sort)))
    if values or by_value is not None:
        records = select_by_values(records, place, values, by_value)
    return [TrainedRun(place / record.id, record) for record in records]


def load(source: str | Path | TrainedRun, *, best: bool = True, seed: int = 0) -> ActingPolicy:
    """The policy of a run, checkpoint or policy file, to act with: `rl4sys.load("last").act(observation)`.

    Of a run it is the best one, or with `best=False` the newest. `seed` matters to policies that draw their actions.
    """
    found = stored_policy(source.path if isinstance(source, TrainedRun) else source, best=best)
    return ActingPolicy(found.policy.exploit, found.policy.weights, found.environment, seed)

"""Compares groups of runs: estimates with intervals, probability of improvement, and settings that differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.laboratory.comparison.groups import Group, differences, group
from rl4sys.laboratory.comparison.statistics import Estimate, Scores, estimate_iqm, probability_of_improvement
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.run_files import RETURN, final_metrics

SHORT_NAMES = {"return": RETURN, "reward": RETURN}


MANY = 5
"""With more groups than this, tables rank them instead of showing every pair."""


class NothingToCompare(ValueError):
    """The runs have no records of the requested metrics."""


@dataclass(frozen=True, slots=True)
class Score:
    """The last value of a metric, over the runs of a group."""

    group: str
    metric: str
    seeds: int
    iqm: Estimate
    mean: float
    low: float
    """The lowest of its runs."""
    high: float


@dataclass(frozen=True, slots=True)
class Improvement:
    """The probability that a run of one group has a higher return than a run of another."""

    group: str
    other: str
    metric: str
    probability: Estimate


@dataclass(frozen=True, slots=True)
class Comparison:
    """The comparison of some groups of runs."""

    groups: tuple[Group, ...]
    metrics: tuple[str, ...]
    scores: tuple[Score, ...]
    improvements: tuple[Improvement, ...]
    differences: Mapping[str, Sequence[Any]]
    """Settings that differ, with the value of each group."""
    remarks: tuple[str, ...]

    def ranking(self) -> tuple[Score, ...]:
        """The scores in the order of the groups, or of many groups the highest first, metric by metric."""
        if len(self.groups) <= MANY:
            return self.scores
        places = {metric: place for place, metric in enumerate(self.metrics)}
        return tuple(sorted(self.scores, key=lambda score: (places[score.metric], -score.iqm.value)))

    def json_values(self) -> dict[str, Any]:
        """The comparison for `--json`."""
        return {
            "groups": [
                {"label": each.label, "runs": [str(member.directory) for member in each.members]}
                for each in self.groups
            ],
            "scores": [
                {
                    "group": score.group,
                    "metric": score.metric,
                    "seeds": score.seeds,
                    "iqm": score.iqm.json_values(),
                    "mean": score.mean,
                    "min": score.low,
                    "max": score.high,
                }
                for score in self.scores
            ],
            "probability_of_improvement": [
                {"group": one.group, "over": one.other, "metric": one.metric, **one.probability.json_values()}
                for one in self.improvements
            ],
            "config": {
                key: dict(zip([each.label for each in self.groups], values, strict=True))
                for key, values in self.differences.items()
            },
            "remarks": list(self.remarks),
        }


def compare(
    chosen: Sequence[tuple[Path, RunRecord]],
    metrics: Sequence[str],
    seed: int = 0,
    last_values: Callable[[Path], Mapping[str, float]] = final_metrics,
) -> Comparison:
    """Compare runs by metrics such as `return`, `loss` or `train/entropy`; the same seed gives the same intervals.

    `last_values` has the last value of every metric of a run that may be meant.
    """
    groups, remarks = group(chosen)
    if not groups:
        raise NothingToCompare("\n".join(["None of these runs can be read:", *(f"  {remark}" for remark in remarks)]))
    finals = {member.directory: last_values(member.directory) for each in groups for member in each.members}
    names = resolve_metrics(metrics, [name for final in finals.values() for name in final])
    values: dict[tuple[str, str], Scores] = {}
    for name in names:
        for each in groups:
            present = [finals[member.directory].get(name) for member in each.members]
            if missing := sum(value is None for value in present):
                remarks.append(f"{missing} of {len(present)} runs of {each.label} have no {name}")
            if len(present) > missing:
                values[each.label, name] = np.array([value for value in present if value is not None], np.float64)
    budgets = {each.label: max(member.record.steps for member in each.members) for each in groups}
    if len({steps for steps in budgets.values() if steps}) > 1:
        few, many = min(budgets, key=budgets.__getitem__), max(budgets, key=budgets.__getitem__)
        remarks.append(
            f"budgets differ: {few} has {budgets[few]:,} steps and {many} {budgets[many]:,}; last values are compared"
        )
    rng = np.random.default_rng(seed)
    return Comparison(
        groups=tuple(groups),
        metrics=names,
        scores=tuple(_score(label, name, scores, rng) for (label, name), scores in values.items()),
        improvements=tuple(_improvements(groups, values, rng)),
        differences=differences(groups),
        remarks=tuple(remarks),
    )


def resolve_metrics(wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The full names of metrics: `return` is that of evaluations, `loss` stands for every loss."""
    found: dict[str, None] = {}
    for text in wanted:
        full = SHORT_NAMES.get(text, text)
        matching = [full] if full in names else [name for name in names if _matches(name, text)]
        if not matching:
            known = ", ".join(sorted(set(names))) or "none yet"
            raise NothingToCompare(f"These runs have no metric '{text}'; they have: {known}.")
        found |= dict.fromkeys(matching)
    return tuple(found)


def _matches(name: str, text: str) -> bool:
    last = name.rpartition("/")[2]
    return last == text or last.endswith(f"_{text}")


def _score(label: str, metric: str, scores: Scores, rng: np.random.Generator) -> Score:
    estimate = estimate_iqm([scores], rng)
    low, high = float(scores.min()), float(scores.max())
    return Score(label, metric, len(scores), estimate, float(scores.mean()), low, high)


def _improvements(
    groups: Sequence[Group], values: Mapping[tuple[str, str], Scores], rng: np.random.Generator
) -> list[Improvement]:
    """For every pair with the same environment, both ways: returns of different environments cannot be compared."""
    found = []
    for metric in dict.fromkeys(name for _, name in values if name.endswith("/return")):
        for ours, theirs in combinations(groups, 2):
            mine, other = values.get((ours.label, metric)), values.get((theirs.label, metric))
            if ours.environment == theirs.environment and mine is not None and other is not None:
                estimate = probability_of_improvement([mine], [other], rng)
                found.append(Improvement(ours.label, theirs.label, metric, estimate))
                # Ties count half, so the two probabilities add up to one.
                found.append(Improvement(theirs.label, ours.label, metric, estimate.complement()))
    return found

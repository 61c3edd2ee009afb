"""Compares groups of runs: estimates with intervals, odds of being better, and what differs in the configs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.laboratory.comparison.groups import Group, differences, group
from rl4sys.laboratory.comparison.statistics import Estimate, Scores, estimate_iqm, probability_of_improvement
from rl4sys.laboratory.run_index.records import RunRecord
from rl4sys.run_files import RETURN, final_metrics

_SHORT = {"return": RETURN, "reward": RETURN}


class NothingToCompare(ValueError):
    """The runs have no records of what was asked for."""


@dataclass(frozen=True, slots=True)
class Score:
    """A metric of a group at the end of its runs."""

    group: str
    metric: str
    seeds: int
    iqm: Estimate
    mean: float
    low: float
    """The lowest of its runs."""
    high: float


@dataclass(frozen=True, slots=True)
class Odds:
    """How likely a run of one group has a higher return than one of another."""

    group: str
    other: str
    metric: str
    probability: Estimate


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is told about some groups of runs."""

    groups: tuple[Group, ...]
    metrics: tuple[str, ...]
    scores: tuple[Score, ...]
    odds: tuple[Odds, ...]
    differences: Mapping[str, Sequence[Any]]
    """Settings that differ, with the value of each group."""
    remarks: tuple[str, ...]

    def facts(self) -> dict[str, Any]:
        """The comparison for scripts."""
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
                    "iqm": score.iqm.facts(),
                    "mean": score.mean,
                    "min": score.low,
                    "max": score.high,
                }
                for score in self.scores
            ],
            "probability_of_improvement": [
                {"group": odds.group, "over": odds.other, "metric": odds.metric, **odds.probability.facts()}
                for odds in self.odds
            ],
            "config": {
                key: dict(zip([each.label for each in self.groups], values, strict=True))
                for key, values in self.differences.items()
            },
            "remarks": list(self.remarks),
        }


def compare(chosen: Sequence[tuple[Path, RunRecord]], metrics: Sequence[str], seed: int = 0) -> Comparison:
    """Compare runs by metrics such as `return`, `loss` or `train/entropy`; the same seed gives the same intervals."""
    groups, remarks = group(chosen)
    if not groups:
        raise NothingToCompare("\n".join(["None of these runs can be read:", *(f"  {remark}" for remark in remarks)]))
    finals = {member.directory: final_metrics(member.directory) for each in groups for member in each.members}
    names = resolve_metrics(metrics, [name for final in finals.values() for name in final])
    values: dict[tuple[str, str], Scores] = {}
    for name in names:
        for each in groups:
            present = [finals[member.directory].get(name) for member in each.members]
            if missing := sum(value is None for value in present):
                remarks.append(f"{missing} of {len(present)} runs of {each.label} have no {name}")
            if len(present) > missing:
                values[each.label, name] = np.array([value for value in present if value is not None], np.float64)
    rng = np.random.default_rng(seed)
    return Comparison(
        groups=tuple(groups),
        metrics=names,
        scores=tuple(_score(label, name, scores, rng) for (label, name), scores in values.items()),
        odds=tuple(_odds(groups, values, rng)),
        differences=differences(groups),
        remarks=tuple(remarks),
    )


def resolve_metrics(wanted: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The full names of metrics: `return` is that of evaluations, `loss` stands for every loss there is."""
    found: dict[str, None] = {}
    for text in wanted:
        full = _SHORT.get(text, text)
        fitting = [full] if full in names else [name for name in names if _fits(name, text)]
        if not fitting:
            known = ", ".join(sorted(set(names))) or "none yet"
            raise NothingToCompare(f"These runs have no metric '{text}'; they have: {known}.")
        found |= dict.fromkeys(fitting)
    return tuple(found)


def _fits(name: str, text: str) -> bool:
    last = name.rpartition("/")[2]
    return last == text or last.endswith(f"_{text}")


def _score(label: str, metric: str, scores: Scores, rng: np.random.Generator) -> Score:
    estimate = estimate_iqm([scores], rng)
    low, high = float(scores.min()), float(scores.max())
    return Score(label, metric, len(scores), estimate, float(scores.mean()), low, high)


def _odds(groups: Sequence[Group], values: Mapping[tuple[str, str], Scores], rng: np.random.Generator) -> list[Odds]:
    """For every pair of one environment, both ways: returns of different tasks say nothing about each other."""
    odds = []
    for metric in dict.fromkeys(name for _, name in values if name.endswith("/return")):
        for ours, theirs in combinations(groups, 2):
            mine, other = values.get((ours.label, metric)), values.get((theirs.label, metric))
            if ours.environment == theirs.environment and mine is not None and other is not None:
                estimate = probability_of_improvement([mine], [other], rng)
                odds.append(Odds(ours.label, theirs.label, metric, estimate))
                # Ties count half, so what one does not win the other does.
                odds.append(Odds(theirs.label, ours.label, metric, estimate.complement()))
    return odds

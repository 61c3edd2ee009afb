"""Rules that order queued jobs, from the literature: the rivals of a learned policy.

The lowest score is first; among equal scores, the job that was submitted first. With s the submit time, r the
requested time, n the processors and w the time waited so far, F1 to F4 are those of Carastan-Santos and de Camargo (SC
2017), WFP3 and UNICEP those of Tang et al. (CLUSTER 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from rl4sys.environments.scheduling.machine import UNSTARTED, Machine
from rl4sys.environments.scheduling.workload import Workload
from rl4sys.experience import Array
from rl4sys.suggestions import did_you_mean


class UnknownHeuristic(ValueError):
    """No heuristic has this name."""


class Rule(Protocol):
    """Orders queued jobs of one machine."""

    def first(self, machine: Machine) -> int:
        """The job to pick of all queued jobs."""

    def best(self, machine: Machine, jobs: Iterable[int]) -> int:
        """The job to pick of some queued jobs."""


class RankedRule:
    """Orders jobs by scores that stay as they are: the queue is a heap of ranks."""

    def __init__(self, scores: Array) -> None:
        order = np.argsort(scores, kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.arange(len(order))
        self._jobs: list[int] = order.tolist()
        self._ranks: list[int] = ranks.tolist()
        self._heap: list[int] = []
        self._seen = 0

    def first(self, machine: Machine) -> int:
        """The queued job of the lowest rank; jobs that were started in the meantime leave the heap here."""
        heap, jobs, starts = self._heap, self._jobs, machine.starts
        while self._seen < machine.arrived:
            heappush(heap, self._ranks[self._seen])
            self._seen += 1
        while starts[jobs[heap[0]]] != UNSTARTED:
            heappop(heap)
        return jobs[heap[0]]

    def best(self, machine: Machine, jobs: Iterable[int]) -> int:
        """The job of the lowest rank."""
        return min(jobs, key=self._ranks.__getitem__)


class WaitingRule:
    """Orders jobs by scores that change while they wait."""

    def __init__(self, score: Callable[[Array, Array, Array], Array], jobs: Workload) -> None:
        self._score, self._columns = score, (jobs.submit, jobs.requested, jobs.needed)

    def first(self, machine: Machine) -> int:
        """The queued job of the lowest score now."""
        return self.best(machine, machine.queue)

    def best(self, machine: Machine, jobs: Iterable[int]) -> int:
        """The job of the lowest score now."""
        rows = np.fromiter(jobs, np.int64)
        submit, requested, needed = (column[rows] for column in self._columns)
        return int(rows[np.argmin(self._score(machine.now - submit, requested, needed))])


@dataclass(frozen=True, slots=True)
class Heuristic:
    """A named rule, in words, and what makes it for one workload."""

    meaning: str
    make: Callable[[Workload], Rule]


def _ranked(score: Callable[[Array, Array, Array], Array]) -> Callable[[Workload], Rule]:
    return lambda jobs: RankedRule(score(jobs.submit, jobs.requested, jobs.needed))


def _waiting(score: Callable[[Array, Array, Array], Array]) -> Callable[[Workload], Rule]:
    return lambda jobs: WaitingRule(score, jobs)


def _log10(submit: Array) -> Array:
    """Of submit times, which may begin at 0."""
    return np.log10(np.maximum(submit, 0.1))


def _unicep(waited: Array, requested: Array, needed: Array) -> Array:
    # The logarithm of one processor is 0, so such jobs count as if they needed two.
    return np.asarray(-waited / (np.log2(np.maximum(needed, 2)) * requested))


HEURISTICS: Mapping[str, Heuristic] = {
    "fcfs": Heuristic("first come, first served", _ranked(lambda s, r, n: s)),
    "sjf": Heuristic("shortest job first: r", _ranked(lambda s, r, n: r)),
    "saf": Heuristic("smallest area first: r·n", _ranked(lambda s, r, n: r * n)),
    "smallest": Heuristic("fewest processors first: n", _ranked(lambda s, r, n: n)),
    "f1": Heuristic("log10(r)·n + 870·log10(s)", _ranked(lambda s, r, n: np.log10(r) * n + 870.0 * _log10(s))),
    "f2": Heuristic("√r·n + 25600·log10(s)", _ranked(lambda s, r, n: np.sqrt(r) * n + 25_600.0 * _log10(s))),
    "f3": Heuristic("r·n + 6860000·log10(s)", _ranked(lambda s, r, n: r * n + 6_860_000.0 * _log10(s))),
    "f4": Heuristic("r·√n + 530000·log10(s)", _ranked(lambda s, r, n: r * np.sqrt(n) + 530_000.0 * _log10(s))),
    "wfp3": Heuristic("−(w/r)³·n", _waiting(lambda w, r, n: -((w / r) ** 3) * n)),
    "unicep": Heuristic("−w/(log2(n)·r)", _waiting(_unicep)),
}


def heuristic(name: str) -> Heuristic:
    """The heuristic of a name."""
    if name not in HEURISTICS:
        raise UnknownHeuristic(
            f"Unknown heuristic '{name}'{did_you_mean(name, HEURISTICS) or '.'} Known: {', '.join(HEURISTICS)}."
        )
    return HEURISTICS[name]

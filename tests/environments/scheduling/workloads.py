"""Workloads that the tests of this folder share."""

from __future__ import annotations

import numpy as np

from rl4sys.environments.scheduling import Workload, generate, workload

PROCESSORS = 5


def six_jobs() -> Workload:
    """Small enough to be scheduled by hand, on five processors: (submit, run, needed)."""
    jobs = [(0, 10, 2), (1, 20, 4), (2, 4, 2), (3, 30, 1), (4, 2, 1), (5, 12, 2)]
    submit, run, needed = (np.array(column) for column in zip(*jobs, strict=True))
    return workload(submit, run, run, needed, PROCESSORS)


def generated(count: int, seed: int = 0, processors: int = 64) -> Workload:
    return generate(count, processors, np.random.default_rng(seed))


def with_wrong_requests(jobs: Workload, rng: np.random.Generator) -> Workload:
    """The same jobs, whose users asked for less or for more time than needed."""
    asked = np.rint(jobs.run * rng.uniform(0.5, 3.0, len(jobs))) + 1.0
    return workload(jobs.submit, jobs.run, asked, jobs.needed, jobs.processors)

"""Schedules of public traces, as published. Set RL4SYS_TRACES to the directory of lublin_256.swf.gz to run them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from rl4sys.environments.scheduling import ProtocolName, Workload, mean_metrics, measure, read_swf, schedule_by

TRACES = os.environ.get("RL4SYS_TRACES")
FIRST = (1981, 2756, 4299, 8850, 3316, 2714, 5228, 7762, 4022, 7085)
pytestmark = pytest.mark.skipif(TRACES is None, reason="RL4SYS_TRACES does not name a directory with traces")


def mean_slowdown(sequences: list[Workload], name: str, protocol: ProtocolName) -> float:
    return mean_metrics([measure(schedule_by(name, each, protocol)) for each in sequences]).slowdown


def trace(name: str) -> Workload:
    return read_swf(Path(str(TRACES)) / f"{name}.swf.gz").jobs


@pytest.mark.parametrize(
    ("name", "protocol", "answers"),
    [
        ("lublin_256", "commit", (7273.77, 277.35, 258.37, 337.34, 370.56)),
        ("lublin_256", "backfill", (235.82, 73.31, 75.07)),
        ("lublin_256_new2", "commit", (7842.47, 787.89, 698.34)),
        ("lublin_256_new2", "backfill", (247.61, 91.99, 148.25)),
    ],
)
def test_sequences_of_1024_jobs(name: str, protocol: ProtocolName, answers: tuple[float, ...]) -> None:
    jobs = trace(name)
    sequences = [jobs.span(first, 1024) for first in FIRST]
    rules = ("fcfs", "sjf", "f1", "wfp3", "unicep")[: len(answers)]
    assert [round(mean_slowdown(sequences, rule, protocol), 2) for rule in rules] == list(answers)


@pytest.mark.parametrize(
    ("protocol", "answers"), [("commit", (2235.68, 362.95, 336.29)), ("backfill", (135.40, 78.77, 66.60))]
)
def test_sequences_of_256_jobs(protocol: ProtocolName, answers: tuple[float, ...]) -> None:
    firsts = np.random.default_rng(0).integers(256, 9743, 40)
    jobs = trace("lublin_256")
    sequences = [jobs.span(int(first), 256) for first in firsts]
    assert [round(mean_slowdown(sequences, rule, protocol), 2) for rule in ("fcfs", "sjf", "f1")] == list(answers)


def test_theta_is_sorted_and_keeps_its_wrong_requests() -> None:
    jobs = trace("theta_walltime")
    assert (len(jobs), jobs.processors) == (23387, 4392)
    assert (np.diff(jobs.submit) >= 0.0).all()
    assert np.mean(jobs.requested < jobs.run) == pytest.approx(0.2, abs=0.02)

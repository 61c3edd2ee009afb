from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from rl4sys.environments.scheduling import TraceUnreadable, WorkloadTooShort, read_swf, write_swf

from .workloads import generated, six_jobs

JOB = "1 100 -1 60 4 -1 -1 8 120 -1 1 -1 -1 -1 -1 -1 -1 -1"


def written(directory: Path, *lines: str, compressed: bool = False) -> Path:
    path = directory / "trace.swf"
    text = "\n".join(lines).encode()
    path.write_bytes(gzip.compress(text) if compressed else text)
    return path


def job(**columns: object) -> str:
    """A line with the columns that matter: submit, run, allocated, processors, requested."""
    places = {"submit": 1, "run": 3, "allocated": 4, "processors": 7, "requested": 8}
    words = JOB.split()
    for name, value in columns.items():
        words[places[name]] = str(value)
    return " ".join(words)


@pytest.mark.parametrize("compressed", [False, True])
def test_comments_are_skipped_and_name_the_machine(compressed: bool, tmp_path: Path) -> None:
    trace = read_swf(written(tmp_path, "; MaxNodes: 64", ";MaxProcs:   128", "", JOB, compressed=compressed))
    jobs = trace.jobs
    assert (jobs.processors, len(jobs), trace.dropped) == (128, 1, 0)
    assert (jobs.submit[0], jobs.run[0], jobs.requested[0], jobs.needed[0]) == (100, 60, 120, 8)


def test_a_job_needs_the_larger_of_allocated_and_requested_processors(tmp_path: Path) -> None:
    jobs = read_swf(written(tmp_path, job(allocated=16, processors=-1), job(allocated=-1, processors=2))).jobs
    assert jobs.needed.tolist() == [16, 2]
    assert jobs.processors == 16


def test_a_missing_requested_time_is_the_run_time(tmp_path: Path) -> None:
    assert read_swf(written(tmp_path, job(run=60, requested=-1))).jobs.requested.tolist() == [60]


def test_jobs_that_never_ran_are_dropped_and_counted(tmp_path: Path) -> None:
    trace = read_swf(written(tmp_path, job(run=0), job(run=-1), job(allocated=-1, processors=0), JOB))
    assert (len(trace.jobs), trace.dropped) == (1, 3)


def test_jobs_are_sorted_by_submit_time_and_keep_their_order_within_it(tmp_path: Path) -> None:
    lines = [job(submit=9, run=1), job(submit=5, run=2), job(submit=9, run=3), job(submit=1, run=4)]
    assert read_swf(written(tmp_path, *lines)).jobs.run.tolist() == [4, 2, 1, 3]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (job(run="soon"), r"trace\.swf, line 2, column 4 \(run time\) is 'soon'; expected a number"),
        (job(submit="nan"), r"line 2, column 2 \(submit time\) is 'nan'"),
        ("1 2 3", r"line 2, column 4 \(run time\) is missing: a job has 18 columns, this line has 3"),
        (job(processors=400), r"line 2, column 5 or 8: the job needs 400 processors, but the machine has 256"),
    ],
)
def test_a_malformed_line_is_named_with_its_column(line: str, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(TraceUnreadable, match=complaint):
        read_swf(written(tmp_path, "; MaxProcs: 256", line))


def test_files_that_are_no_traces_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceUnreadable, match="there is no such file"):
        read_swf(tmp_path / "missing.swf")
    with pytest.raises(TraceUnreadable, match="contains no job that ran"):
        read_swf(written(tmp_path, "; MaxProcs: 256"))
    path = written(tmp_path, *[JOB] * 100, compressed=True)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(TraceUnreadable, match="cannot be read"):
        read_swf(path)


@pytest.mark.parametrize("name", ["jobs.swf", "jobs.swf.gz"])
def test_a_written_workload_is_read_back(name: str, tmp_path: Path) -> None:
    jobs = generated(50)
    write_swf(jobs, tmp_path / name)
    back = read_swf(tmp_path / name).jobs
    for column in ("submit", "run", "requested", "needed"):
        np.testing.assert_array_equal(getattr(back, column), getattr(jobs, column))
    assert back.processors == jobs.processors


def test_a_workload_is_cut_into_60_20_and_20_percent() -> None:
    jobs = generated(100)
    parts = [jobs.part(name) for name in ("training", "validation", "test")]
    assert [len(part) for part in parts] == [60, 20, 20]
    np.testing.assert_array_equal(np.concatenate([part.submit for part in parts]), jobs.submit)


def test_a_sequence_longer_than_the_workload_is_refused() -> None:
    with pytest.raises(WorkloadTooShort, match="Sequences of 7 jobs were asked for, but this workload has 6 jobs"):
        six_jobs().sequences(1, 7, np.random.default_rng(0))
    with pytest.raises(WorkloadTooShort, match="Jobs 3 to 6 were asked for"):
        six_jobs().span(3, 4)

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rl4sys.experiments.metrics import MetricRecord, MetricsFile, metrics_digest, read_metrics


def record(step: int, value: float = 1.0) -> MetricRecord:
    return MetricRecord(step, {"return": value}, {"seconds": step / 7})


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """A disk that takes no more than this many bytes per file, as the kernel enforces it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_cutting_forgets_what_came_after(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.log(record(1))
    offset = file.offset()
    file.log(record(2))
    file.cut(offset)
    file.log(record(3))
    file.close()
    assert [line["step"] for line in read_metrics(file.path)] == [1, 3]


def test_a_torn_last_line_is_passed_over_and_cut(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    file = MetricsFile(path)
    file.log(record(1))
    offset = file.offset()
    file.close()
    with path.open("a") as torn:
        torn.write('{"step": 2, "metr')
    assert [line["step"] for line in read_metrics(path)] == [1]
    reopened = MetricsFile(path)
    reopened.cut(offset)
    reopened.close()
    assert path.read_text().endswith("}\n")


def test_records_lost_in_a_crash_are_reported_and_not_replaced_by_zeros(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.log(record(1))
    file.log(record(2))
    offset = file.offset()
    file.close()
    os.truncate(file.path, offset - 5)
    reopened = MetricsFile(file.path)
    reopened.cut(offset)
    reopened.log(record(3))
    reopened.close()
    assert "lost its last records" in caplog.text
    assert [line["step"] for line in read_metrics(file.path)] == [1, 3]


def test_a_damaged_line_is_skipped_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1, "metrics": {}}\n\x00\xff\x00\n{"step": 2, "metrics": {}}\n')
    assert [line["step"] for line in read_metrics(path)] == [1, 2]
    assert "line 2 is damaged" in caplog.text


def test_a_full_disk_leaves_whole_lines(tmp_path: Path) -> None:
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.log(record(1))
    length = file.offset()
    with files_up_to(length + 10), pytest.raises(OSError, match=r"File too large|only 10 of"):
        file.log(record(2))
    assert file.offset() == length == file.path.stat().st_size
    file.close()


def test_timing_does_not_tell_runs_apart(tmp_path: Path) -> None:
    digests = []
    for name, seconds in (("a", 1.0), ("b", 2.0)):
        file = MetricsFile(tmp_path / name)
        file.log(MetricRecord(1, {"loss": float("nan")}, {"seconds": seconds}))
        file.close()
        digests.append(metrics_digest(file.path))
    assert digests[0] == digests[1]

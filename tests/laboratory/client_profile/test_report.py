"""Reports on what a client costs, from recordings with known answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rl4sys.client.client_level import ClientLevel
from rl4sys.client.profiler import time_bucket
from rl4sys.laboratory.client_profile import ProfileFailed, Recording, plot_profile, report_on

SPEED = {"off": 1000, "decide": 980, "record": 950, "full": 900}


def block(level: str, number: int, decisions: int) -> dict[str, Any]:
    """A second at a level, in which decisions took 10 µs and 2 % of them 80 µs."""
    slow = decisions // 50
    return {
        "kind": "block",
        "round": number,
        "level": level,
        "seconds": 1.0,
        "decisions": decisions,
        "cpu": 0.05,
        "background_cpu": 0.01,
        "memory": 60_000_000 + 1_000 * number,
        "waits": 5,
        "preemptions": 1,
        "sent_messages": 4,
        "sent_bytes": 4_000,
        "received_messages": 2,
        "received_bytes": 500,
        "backlog": 1,
        "backlog_bytes": 1_000,
        "age": 0.5,
        "longest": 99_000,
        "times": {time_bucket(10_000): decisions - slow, time_bucket(80_000): slow},
    }


def recording(directory: Path, *, rounds: int = 8, noise: float = 0.0) -> Recording:
    lines: list[dict[str, Any]] = [{"kind": "start", "clients": ["cache-1"]}]
    for number in range(rounds):
        factor = 1.0 + noise * (number % 2)
        lines += [
            block(level, number, int(speed * (factor if level == "full" else 1))) for level, speed in SPEED.items()
        ]
    lines += [{"kind": "floor", "nanoseconds": 3_000}, {"kind": "end", "problem": None}]
    directory.mkdir(exist_ok=True)
    (directory / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"kind": "blo')
    return Recording.read(directory)


def test_throughput_is_relative_to_off_in_the_same_round(tmp_path: Path) -> None:
    levels = {level.level: level for level in report_on(recording(tmp_path)).levels}
    assert levels[ClientLevel.FULL].throughput.value == pytest.approx(0.9)
    assert levels[ClientLevel.DECIDE].throughput.value == pytest.approx(0.98)
    assert all(level.is_resolved for level in levels.values())


def test_quantiles_processor_time_and_traffic_come_out(tmp_path: Path) -> None:
    found = report_on(recording(tmp_path))
    off = found.levels[0]
    assert off.act_microseconds["p50"] == pytest.approx(10, rel=0.03)
    assert off.act_microseconds["p99"] == pytest.approx(80, rel=0.03)
    assert off.act_microseconds["max"] == 99.0
    assert (off.caller_cpu_microseconds, off.background_cpu_microseconds) == (pytest.approx(40), pytest.approx(10))
    assert (off.sent_bytes_per_second, off.received_messages_per_second) == (4_000, 2)
    assert (found.floor_microseconds, found.memory_growth) == (3.0, 7_000)


def test_an_interval_wider_than_five_percent_is_not_resolved_and_says_how_long_to_measure(tmp_path: Path) -> None:
    found = report_on(recording(tmp_path, noise=0.5))
    assert not found.levels[-1].is_resolved
    assert found.advice is not None
    assert "--seconds" in found.advice


def test_a_program_that_ended_early_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProfileFailed, match="ended after 1 complete rounds"):
        report_on(recording(tmp_path, rounds=1))


def test_several_processes_are_refused(tmp_path: Path) -> None:
    recording(tmp_path)
    (tmp_path / "2.jsonl").write_text("")
    with pytest.raises(ProfileFailed, match="2 processes"):
        Recording.read(tmp_path)


def test_the_page_and_the_json_are_written(tmp_path: Path) -> None:
    found = report_on(recording(tmp_path))
    assert plot_profile(found, tmp_path / "page.png").stat().st_size > 10_000
    assert json.loads(json.dumps(found.json_values()))["levels"][3]["level"] == "full"

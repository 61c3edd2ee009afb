"""Curves of a server, from the history in its data directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import Here
from tests.cli.conftest import rl4sys  # noqa: F401

from rl4sys.laboratory.server_history.history import learner_series, rates, read_history


def write_history(data: Path, count: int = 20) -> None:
    lines = [
        {
            "time": 1e9 + 10.0 * number,
            "cpu": 0.1,
            "memory": 80_000_000,
            "disk_free": 10**9,
            "clients": 2,
            "calls": 50 * number,
            "failed_calls": number,
            "learners": {
                "cache": {
                    "version": number,
                    "queued_segments": number % 3,
                    "queued_bytes": 100,
                    "stored_segments": number,
                    "stored_bytes": 1_000 * number,
                    "learned_steps": number,
                    "return": None if number == 0 else float(number),
                    "cpu": 0.5,
                    "memory": 10**8,
                }
            },
        }
        for number in range(count)
    ]
    data.mkdir()
    (data / "history.1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines[: count // 2]))
    newer = "".join(json.dumps(line) + "\n" for line in lines[count // 2 :])
    (data / "history.jsonl").write_text(newer + '{"time": 1')


def test_both_files_are_one_history_without_a_line_cut_short(tmp_path: Path) -> None:
    write_history(tmp_path / "data")
    lines = read_history(tmp_path / "data")
    assert learner_series(lines, "cache", "return")[1] == [float(number) for number in range(1, 20)]
    assert len(read_history(tmp_path / "data", hours=55 / 3600)) == 6


def test_a_counter_that_went_back_counts_from_zero() -> None:
    assert rates([0, 10, 20, 30], [0, 50, 20, 40]) == ([10, 20, 30], [5.0, 2.0, 2.0])


def test_the_page_is_drawn(rl4sys: Here, tmp_path: Path) -> None:  # noqa: F811
    write_history(tmp_path / "data")
    code, out, err = rl4sys("plot", "--server", "data", "--output", "server.png")
    assert (code, err) == (0, "")
    assert "wrote server.png" in out
    assert (tmp_path / "server.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--server", "absent"], "There is no directory absent"),
        (["--server", "."], "has no history yet"),
        ([], "Name runs to plot"),
    ],
)
def test_what_cannot_be_drawn_is_one_clear_error(rl4sys: Here, arguments: list[str], words: str) -> None:  # noqa: F811
    code, _, err = rl4sys("plot", *arguments)
    assert code == 2
    assert words in err

"""The list of benchmarks that `make bench` runs."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def run_all(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("run_all")


def test_every_benchmark_is_a_program_of_this_repository(run_all: Any) -> None:
    for name in run_all.BENCHMARKS:
        first, *rest = run_all._command(name).split()
        path = f"{rest[0].replace('.', '/')}/__main__.py" if first == "-m" else first
        assert (ROOT / path).is_file(), name


def test_the_balancer_and_the_peers_are_among_them_in_short_runs(run_all: Any) -> None:
    assert {"load_balancer", "side_by_side/bench_peers.py"} <= run_all.BENCHMARKS.keys()
    assert "--minutes 10" in run_all._command("side_by_side/bench_peers.py")
    assert "--blocks 4" in run_all._command("load_balancer")

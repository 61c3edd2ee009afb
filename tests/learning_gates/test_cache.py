"""Learning gates for the cache example of the C++ client, which learns in one pass over a trace (`make test-learning`).

`RL4SYS_OLTP=OLTP.lis.zst` adds the gates on the OLTP trace of the ARC paper, which is not part of this project.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cpp.programs import ROOT, Server

CACHE = Path(os.environ.get("RL4SYS_CPP_BUILD", ROOT / "cpp" / "build" / "release")) / "examples" / "cache"
OLTP = os.environ.get("RL4SYS_OLTP")

pytestmark = [
    pytest.mark.learning,
    pytest.mark.skipif(not CACHE.is_file(), reason="the examples of the C++ client are not built: make cpp"),
]


def served(directory: Path, *arguments: str) -> dict[str, Any]:
    """The report of a cache of 1,000 pages that learned from an untrained policy on."""
    with Server(directory) as server:
        command = [CACHE, "--server", f"127.0.0.1:{server.port}", "--lag", "8192", "--json", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    report: dict[str, Any] = json.loads(done.stdout)
    print({name: round(rates["second_half"], 2) for name, rates in report["hit_rates"].items()}, report["learned"])
    return report


def smallest_lead(rates: dict[str, Any]) -> float:
    """Points ahead of LRU in the worst block after the first."""
    pairs = list(zip(rates["learned"]["blocks"], rates["LRU"]["blocks"], strict=True))[1:]
    return min(learned - lru for learned, lru in pairs)


def test_the_cache_learns_to_be_far_better_than_lru_on_a_generated_trace(tmp_path: Path) -> None:
    rates = served(tmp_path, "--requests", "500000")["hit_rates"]
    assert smallest_lead(rates) >= 5.0
    assert rates["learned"]["second_half"] >= rates["ARC"]["second_half"] - 1.0


@pytest.mark.skipif(OLTP is None, reason="RL4SYS_OLTP names no trace")
def test_the_cache_passes_its_gates_on_oltp(tmp_path: Path) -> None:
    rates = served(tmp_path, "--trace", str(OLTP))["hit_rates"]
    known = {"LRU": 32.83, "Belady": 53.61, "SIEVE": 32.56, "S3-FIFO": 40.84}
    assert {name: round(rates[name]["all"], 2) for name in known} == known
    assert rates["learned"]["second_half"] >= 39.5
    assert smallest_lead(rates) >= 2.0

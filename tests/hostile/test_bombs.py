"""Bombs are refused, and take no more memory than twice what their limit allows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hostile.bombs import BOMBS

SLACK = 1 << 20
"""What Python itself may take while it refuses: an error, its text, a page of heap."""


@pytest.fixture(scope="module")
def set_off() -> dict[str, tuple[int, str]]:
    """By how many bytes a process grew with each bomb, and how it was refused."""
    command = [sys.executable, "-m", "tests.hostile.bombs"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=120)
    return {name: (grown, how) for name, grown, how in map(json.loads, done.stdout.splitlines())}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_is_refused_within_twice_its_limit(name: str, set_off: dict[str, tuple[int, str]]) -> None:
    grown, how = set_off[name]
    assert not how.startswith("FAULT"), how
    assert grown <= 2 * BOMBS[name][1] + SLACK, (grown, how)


def test_there_are_at_least_twenty_kinds_of_bombs() -> None:
    assert len(BOMBS) >= 20

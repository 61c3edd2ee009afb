from __future__ import annotations

import os

import pytest

from rl4sys.cores import usable_cores


def test_only_the_cores_of_the_affinity_count() -> None:
    assert usable_cores() == tuple(sorted(os.sched_getaffinity(0)))


def test_a_system_without_affinity_has_all_its_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert usable_cores() == (0, 1, 2)

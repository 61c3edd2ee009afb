"""A Ray cluster that starts workers while trials wait, and ends them afterwards."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

import pytest

from cli.commands import finish, start

from .namespaces import needs, run_inside

pytestmark = [pytest.mark.cluster, needs("ray")]


def fingerprints(directory: Path, name: str) -> list[dict[str, str]]:
    results = sorted((directory / "runs" / name).glob("*/*/result.json"))
    return [json.loads(result.read_text())["fingerprint"] for result in results]


def test_workers_start_for_the_trials_of_a_sweep_and_end_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    sweep = run_inside("clusters.autoscaling_inside", tmp_path)
    assert sweep["code"] == 0, sweep["err"]
    workers = sweep["workers"]
    assert (workers[0], 2 in workers, workers[-1]) == (0, True, 0), workers
    here = finish(start("sweep", "sweep.json", "--name", "here", cwd=tmp_path), seconds=240)
    assert here.code == 0, here.err
    assert len(fingerprints(tmp_path, "there")) == 2
    assert fingerprints(tmp_path, "there") == fingerprints(tmp_path, "here")

"""EC2 as moto fakes it, with a real `ray up`, a real Ray and a real sshd as every machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from .conftest import TESTS
from .namespaces import needs, run_inside

ENVIRONMENT = Path(os.environ.get("RL4SYS_CLUSTER_ENVIRONMENT", TESTS.parent / ".venv-cluster"))

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(not (ENVIRONMENT / "bin/moto_server").exists(), reason="needs moto: make test-cluster"),
    needs("sshd", "ssh", "rsync"),
]


def results(scenario: str, place: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = run_inside("clusters.ec2_inside", ENVIRONMENT, place, scenario)
    return found


def test_a_run_ends_with_its_machines(tmp_path: Path) -> None:
    (run,) = results("run_and_end", tmp_path)
    assert (run["code"], run["states"]) == (0, ["terminated"]), run["err"]
    assert (tmp_path / "commands.txt").read_text() == (
        "rl4sys train --algorithm ppo --env CartPole-v1 --storage s3://bucket/runs --on ray --address auto "
        "where.autoscaling=true\n"
    )


def test_machines_stay_until_they_are_ended(tmp_path: Path) -> None:
    found = results("step_by_step", tmp_path)
    assert [result["code"] for result in found] == [0, 2, 0, 0, 0, 0], found
    assert [result["states"] for result in found] == [["running"]] * 5 + [["terminated"]]
    _, twice, submitted, status, logs, _ = found
    assert "runs already" in twice["err"]
    assert submitted["out"].strip() in status["err"]
    assert "trained" in logs["err"]


def test_a_failing_set_up_leaves_no_machine(tmp_path: Path) -> None:
    (run,) = results("failing_set_up", tmp_path)
    assert (run["code"], run["states"]) == (2, ["terminated"]), run["err"]
    assert run["err"].splitlines()[-1].startswith("error: `ray up` failed with exit code 1")


def test_a_failing_command_leaves_no_machine(tmp_path: Path) -> None:
    (run,) = results("failing_command", tmp_path)
    assert (run["code"], run["states"]) == (1, ["terminated"]), run["err"]
    assert "The command failed on the cluster" in run["err"].splitlines()[-1]

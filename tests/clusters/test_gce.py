"""Google Compute Engine as a small server of ours fakes it, with a real `ray up`, Ray and sshd."""

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
    pytest.mark.skipif(
        not list(ENVIRONMENT.glob("lib/*/site-packages/googleapiclient")),
        reason="needs google-api-python-client: make test-cluster",
    ),
    needs("sshd", "ssh", "rsync", "openssl", "mount"),
]


def results(scenario: str, place: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What the commands said, and the machines that they started."""
    found = run_inside("clusters.gce_inside", ENVIRONMENT, place, scenario)
    assert found["unknown"] == []
    return found["results"], found["machines"]


def test_machines_of_google_run_until_they_are_ended(tmp_path: Path) -> None:
    found, machines = results("step_by_step", tmp_path)
    assert [result["code"] for result in found] == [0, 2, 0, 0, 0, 0], found
    assert [result["states"] for result in found] == [["RUNNING"]] * 5 + [["DELETED"]]
    _, twice, submitted, status, logs, _ = found
    assert "runs already" in twice["err"]
    assert submitted["out"].strip() in status["err"]
    assert "trained" in logs["err"]
    (head,) = machines
    assert "scheduling" not in head
    assert head["serviceAccounts"][0]["email"] == "ray-autoscaler-sa-v1@lab.iam.gserviceaccount.com"


def test_a_failing_set_up_leaves_no_machine_of_google(tmp_path: Path) -> None:
    (run,), _ = results("failing_set_up", tmp_path)
    assert (run["code"], run["states"]) == (2, ["DELETED"]), run["err"]
    assert run["err"].splitlines()[-1].startswith("error: `ray up` failed with exit code 1")

"""What a cluster must have in common with this machine, asked of nodes that are made up."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rl4sys.collection.cluster_address import ClusterUnfit
from rl4sys.experiments.where import WhereSection
from rl4sys.laboratory.trials import fit_on_ray
from rl4sys.laboratory.trials.trial_host import describe_machine


@pytest.mark.parametrize(
    ("other", "answer"),
    [
        ({"python": "3.8.1"}, "far has python 3.8.1, this machine has .*: runs would differ. Install the same version"),
        ({"rl4sys": "0.1"}, "far has rl4sys 0.1, this machine has "),
        ({"torch": "1.0"}, "far has torch 1.0, this machine has "),
        ({}, r"The cluster has other machines \(far\), which do not see the runs here. Give --storage"),
    ],
)
def test_a_node_that_differs_is_refused(monkeypatch: pytest.MonkeyPatch, other: dict[str, Any], answer: str) -> None:
    node = {"Alive": True, "Resources": {"CPU": 4.0}}
    there = json.loads(describe_machine()) | {"host": "far", **other}
    monkeypatch.setattr(fit_on_ray, "_describe_all", lambda nodes: [there])
    with pytest.raises(ClusterUnfit, match=answer):
        fit_on_ray.require_fit(WhereSection(on="ray", address="head:6379"), [node])

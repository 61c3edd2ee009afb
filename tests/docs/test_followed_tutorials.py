"""Tutorials are followed from their first block to their last, with fewer steps and seeds than a reader takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .documents import ROOT
from .followed_page import follow

TUTORIALS = ROOT / "docs" / "tutorials"


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_policy_goes_from_a_notebook_to_all_machines_and_back(tmp_path: Path) -> None:
    changes = {"total_timesteps=60_000": "total_timesteps=2_048", "episodes=20": "episodes=2", "range(20)": "range(2)"}

    said = list(follow(TUTORIALS / "canary.md", tmp_path, changes))

    decided = [re.findall(r"decided by (the rule|version)", text) for words, text in said if "machine.py" in words]
    by_rule, by_policy = ["the rule"], ["version"]
    assert decided == [
        *(by_rule, by_rule),  # 2. It watches
        *(by_policy, by_rule, by_rule),  # 3. It decides on one machine
        *(by_policy, by_policy),  # 4. It decides everywhere
        by_rule,  # 5. And back
    ]
    watching = said[3][1]
    assert re.search(r"the policy agrees with \d+ of 400 decisions", watching), watching
    audit = said[-1][1]
    reasons = ("trained in the notebook", "the canary first", "0.69 instead of 0.89 on machine-1", "back to the rule")
    assert [reason for reason in reasons if reason not in audit] == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_algorithms_are_compared_over_seeds(tmp_path: Path) -> None:
    changes = {"--seed 1,2,3,4,5": "--seed 1,2", "total_timesteps=30_000": "total_timesteps=512"}

    said = list(follow(TUTORIALS / "compare.md", tmp_path, changes))

    _, _, (_, listed), (_, compared) = said
    assert len(re.findall(r"^(?:ppo|dqn)-CartPole", listed, re.MULTILINE)) == 4, listed
    for algorithm, other in (("ppo", "dqn"), ("dqn", "ppo")):
        row = rf"^{algorithm}-CartPole-v1 +evaluation/return +2 "
        improvement = rf"^{algorithm}-CartPole-v1 +{other}-CartPole-v1 +evaluation/return +\d\.\d\d "
        assert re.search(row, compared, re.MULTILINE), compared
        assert re.search(improvement, compared, re.MULTILINE), compared
    assert (tmp_path / "compare.png").stat().st_size > 10_000

"""Learning gate for soft Q-learning: the policy visits all of four equal goals (`make test-learning`)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "multi_goal"
ROLLOUTS, REACHED, EACH = 100, 95, 10


@pytest.mark.learning
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_soft_q_learning_visits_all_four_goals(seed: int, tmp_path: Path) -> None:
    output = tmp_path / "multi_goal"
    command = [sys.executable, EXAMPLE, "--algorithms", "sql", "--seed", str(seed), "--output", output]
    subprocess.run([*map(str, command), "--rollouts", str(ROLLOUTS)], check=True, stdout=subprocess.DEVNULL)
    found = json.loads((output / "summary.json").read_text())["algorithms"]["sql"]
    print(f"\nsql_MultiGoal.yaml, seed {seed}: {found['reached']} of {ROLLOUTS} reached a goal, {found['goals']}")
    assert found["reached"] >= REACHED
    assert min(found["goals"].values()) >= EACH

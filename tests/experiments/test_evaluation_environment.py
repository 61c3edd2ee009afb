from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.config import ConfigError
from rl4sys.experiments import Run

from .runs import PPO, small


def test_a_run_is_evaluated_in_an_environment_of_its_own(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path, environment__evaluation={"max_episode_steps": 3}))
    run.train()
    assert list(run.metrics()["evaluation/length"])[-1] == 3.0
    assert run.latest_metrics()["rollout/length"] > 3.0


def test_other_observations_in_evaluations_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="one policy acts in both"):
        Run.create(small(PPO, tmp_path, environment__evaluation={"frame_stack": 2}))
    assert not list(tmp_path.iterdir())


def test_settings_that_are_not_used_do_not_change_the_digest(tmp_path: Path) -> None:
    plain = small(PPO, tmp_path)
    unused = small(PPO, tmp_path, environment__wrappers=[], environment__frame_stack=1, callbacks=[])
    assert unused.digest() == plain.digest()
    assert small(PPO, tmp_path, environment__frame_stack=2).digest() != plain.digest()

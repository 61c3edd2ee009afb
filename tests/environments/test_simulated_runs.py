"""2N steps = N, forget everything, resume, N: to the bit, in simulators that save themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rl4sys.experiments import Run, load_experiment

SMALL: dict[str, Any] = {
    "network": {"actor": {"hidden_dims": [8]}, "critic": {"hidden_dims": [8]}},
    "buffer": {"type": "uniform", "size": 150},
    "training": {"total_timesteps": 120, "eval_frequency": 0, "num_eval_episodes": 1, "checkpoint_frequency": 1000},
    "logging": {"terminal": False, "tensorboard": False},
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "sac": ("Ant-v5", {}),
    "td3": ("dm_control/cheetah/run", {"frame_skip": 2, "normalize_obs": True}),
    "ddpg": ("rl4sys/PointReach-v0", {"flatten_obs": True}),
}


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", CASES)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path, algorithm: str) -> None:
    name, settings = CASES[algorithm]
    if algorithm != "ddpg":
        pytest.importorskip("dm_control" if "/" in name else "mujoco")
    values = SMALL | {
        "algorithm": {"name": algorithm, "batch_size": 16, "learning_starts": 40},
        "environment": {"name": name, "num_envs": 2, "max_episode_steps": 50, **settings},
        "experiment": {"threads": 1, "directory": str(tmp_path)},
    }
    config = load_experiment(values)
    expected = Run.create(config).train().fingerprint
    with Run.create(config) as run:
        while run.steps < 67:
            run.step()
        run.save()
        run.step()
    resumed = Run.resume(run.directory)
    assert {**resumed.train().fingerprint, "metrics": ""} == {**expected, "metrics": ""}
    assert resumed.inexact == ()

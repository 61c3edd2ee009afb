from __future__ import annotations

import importlib.machinery
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from tests.experiments.runs import PPO, small

import rl4sys
from rl4sys.experiments import Run

REPOSITORY = Path(__file__).parents[2]
PACKAGES = Path(os.environ.get("RL4SYS_CLUSTER_ENVIRONMENT", REPOSITORY / ".venv-cluster")) / "tune"
PLUGIN = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv

gymnasium.register("Mine-v0", CartPoleEnv, max_episode_steps=20)
"""


def trained(directory: Path, **overrides: Any) -> Run:
    run = Run.create(small(PPO, directory, **overrides))
    run.train()
    return run


def test_runs_are_found_by_conditions(tmp_path: Path) -> None:
    run = trained(tmp_path)
    (found,) = rl4sys.runs("algorithm=ppo", "steps>100", root=tmp_path)
    assert found.path == run.directory.path
    assert found.settings["algorithm"]["name"] == "ppo"
    assert list(found.metrics()["step"]) == list(run.metrics()["step"])
    assert len(found.episodes()) > 3
    assert "finished, 256 of 256 steps" in repr(found)
    assert rl4sys.runs("algorithm=dqn", root=tmp_path) == []


def test_a_loaded_policy_acts_on_one_observation_a_batch_or_a_list(tmp_path: Path) -> None:
    run = trained(tmp_path)
    policy = rl4sys.load(run.directory.path)
    observations, _ = gymnasium.make_vec("CartPole-v1", num_envs=3).reset(seed=0)
    batch = policy.act(observations)
    assert batch.shape == (3,)
    assert policy.act(list(observations)).tolist() == batch.tolist()
    assert [policy.act(each) for each in observations] == batch.tolist()


def test_of_several_runs_the_policy_of_the_newest_is_loaded_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    short = {"training__total_timesteps": 32, "training__eval_frequency": 0}
    trained(Path("runs"), experiment__name="mod", **short)
    newest = trained(Path("runs"), experiment__name="mod", experiment__seed=1, **short)
    trained(Path("runs"), experiment__name="modbr", **short)
    policy = rl4sys.load("mod")
    assert f"'mod' matches 2 runs; this is the newest of them, {newest.directory.path}" in caplog.text
    observation = np.ones(4, np.float32)
    assert policy.act(observation) == rl4sys.load(newest.directory.path).act(observation)


def test_memory_is_kept_until_an_episode_begins(tmp_path: Path) -> None:
    policy = rl4sys.load(trained(tmp_path, network__actor__type="lstm").directory.path)
    observation = np.full((2, 4), 0.5, np.float32)
    policy.act(observation)
    first = next(iter(policy._carry.values())).copy()
    policy.act(observation)
    assert not np.array_equal(next(iter(policy._carry.values())), first)
    policy.act(observation, starts=[True, False])
    third = next(iter(policy._carry.values()))
    assert np.array_equal(third[0], first[0])
    assert not np.array_equal(third[1], first[1])


def test_a_policy_whose_environment_is_gone_takes_arrays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    run = trained(tmp_path / "runs", plugins=[str(tmp_path / "mine.py")], environment__name="Mine-v0")
    del gymnasium.registry["Mine-v0"]
    policy = rl4sys.load(run.directory.policies / "latest.rl4sys")
    assert policy.act(np.zeros(4)) in (0, 1)
    assert "the policy takes arrays" in caplog.text


def test_names_can_be_completed() -> None:
    assert {"train", "load", "runs", "Callback", "__version__"} <= set(dir(rl4sys))
    assert not {"Any", "Path", "TYPE_CHECKING", "import_module", "annotations"} & set(dir(rl4sys))


def test_with_pandas_metrics_and_episodes_are_data_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of pandas, whose presence would change what other tests see, a module with the two calls that matter."""

    class DataFrame(dict[str, Any]):
        pass

    pandas = types.ModuleType("pandas")
    pandas.__spec__ = importlib.machinery.ModuleSpec("pandas", None)
    pandas.DataFrame = DataFrame  # type: ignore[attr-defined]
    pandas.read_csv = lambda path: DataFrame(lines=Path(path).read_text().splitlines())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    run = trained(tmp_path)
    (found,) = rl4sys.runs(root=tmp_path)
    assert isinstance(run.metrics(), DataFrame)
    assert isinstance(found.metrics(), DataFrame)
    assert found.metrics()["step"][-1] == 256
    assert found.episodes()["lines"] == run.directory.episodes.read_text().splitlines()


@pytest.mark.cluster
@pytest.mark.skipif(not PACKAGES.exists(), reason="needs pandas: make test-cluster")
def test_real_pandas_gives_data_frames(tmp_path: Path) -> None:
    run = trained(tmp_path)
    program = (
        f"import rl4sys; (run,) = rl4sys.runs(root={str(tmp_path)!r})\n"
        "metrics, episodes = run.metrics(), run.episodes()\n"
        "print(type(metrics).__module__, metrics['step'].iloc[-1], len(episodes), episodes['return'].mean())"
    )
    environment = os.environ | {"PYTHONPATH": f"{PACKAGES}:{REPOSITORY / 'src'}"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    rows = run.directory.episodes.read_text().splitlines()[1:]
    module, step, length, mean = done.stdout.split() or [done.stderr] * 4
    assert (module.partition(".")[0], step, length) == ("pandas", "256", str(len(rows))), done.stderr
    place = run.directory.episodes.read_text().splitlines()[0].split(",").index("return")
    assert float(mean) == pytest.approx(np.mean([float(row.split(",")[place]) for row in rows]))

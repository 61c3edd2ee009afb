from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rl4sys.algorithms import ALGORITHMS
from rl4sys.config import ConfigError
from rl4sys.environments.making import MissingDependency
from rl4sys.experiments import check_combination, load_experiment, packaged_configs

from .runs import PPO, small, values

SHIPPED = sorted(path.name for path in (packaged_configs() / "experiments").glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_experiment_can_be_built(name: str) -> None:
    config = load_experiment(name)
    try:
        check_combination(config)
    except MissingDependency as missing:
        pytest.skip(str(missing))
    assert config.experiment.device == "auto"
    assert not config.logging.wandb.enabled


@pytest.mark.parametrize("name", [name for name in SHIPPED if "-v" in name])
def test_a_tuned_experiment_is_named_after_what_it_is_tuned_for(name: str) -> None:
    config = load_experiment(name)
    algorithm = ALGORITHMS.name_of(config.algorithm)
    assert f"{config.name}.yaml" == name.replace(f"{algorithm}_", f"{algorithm}-", 1)


def test_every_shipped_overlay_is_used() -> None:
    used = {text for path in packaged_configs().rglob("*.yaml") for text in path.read_text().split()}
    used = {text.strip("[],") for text in used}
    overlays = [path for path in packaged_configs().rglob("*.yaml") if path.parent.name != "experiments"]
    assert [path for path in overlays if str(path.relative_to(packaged_configs())) not in used] == []


def test_the_keys_of_the_experiment_need_no_prefix(tmp_path: Path) -> None:
    config = load_experiment(values(PPO, tmp_path), ["seed=7", "device=cpu", "training.total_timesteps=1e3"])
    assert (config.experiment.seed, config.experiment.device, config.training.total_timesteps) == (7, "cpu", 1_000)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("seed", -1, "experiment.seed: got -1; expected at least 0"),
        ("threads", 0, "experiment.threads: got 0; expected at least 1"),
        ("training__total_timesteps", 0, "training.total_timesteps: got 0; expected at least 1"),
        ("training__keep_checkpoints", 1, "training.keep_checkpoints: got 1; expected at least 2"),
        ("training__eval_frequency", -5, "training.eval_frequency: got -5; expected at least 0"),
        ("training__pipelined", "yes", "training.pipelined: got 'yes'; expected true or false"),
        ("training__total_timestep", 5, "unknown key; did you mean 'training.total_timesteps'"),
        ("logging__wandb", True, "logging.wandb: got true; expected a mapping"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused(tmp_path: Path, key: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small(PPO, tmp_path, **{key: value})


def test_a_resolved_config_loads_to_the_same_experiment(tmp_path: Path) -> None:
    config = small(PPO, tmp_path)
    assert load_experiment(config.model_dump(mode="json")) == config


@pytest.mark.parametrize(("steps", "warns"), [(500, True), (501, False)])
def test_a_run_too_short_to_learn_gets_a_warning(steps: int, warns: bool, caplog: pytest.LogCaptureFixture) -> None:
    values = {
        "algorithm": {"name": "dqn", "learning_starts": 500},
        "environment": {"name": "CartPole-v1"},
        "training": {"total_timesteps": steps},
    }
    check_combination(load_experiment(values))
    assert ("nothing will be learned" in caplog.text) is warns


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ["algorithm.learning_rate=1e-3"],
            "The override algorithm.learning_rate: unknown key; did you mean 'algorithm.lr'?",
        ),
        (["trainning.total_timesteps=9"], "The override trainning: unknown key; did you mean 'training'?"),
        ({"algorithm.lr": "fast"}, "The override algorithm.lr: got 'fast'; expected a number"),
        (["seed=-1"], "The override experiment.seed: got -1; expected at least 0"),
    ],
)
def test_a_wrong_override_is_blamed_and_not_the_file(overrides: Any, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_experiment("ppo_CartPole-v1.yaml", overrides)
    assert str(refused.value) == message


def test_of_several_problems_those_of_overrides_are_marked(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: experiments/ppo_CartPole-v1.yaml\nalgorithm: {gama: 1}")
    with pytest.raises(ConfigError) as refused:
        load_experiment(path, ["algorithm.lr=fast"])
    lines = str(refused.value).splitlines()
    assert lines[0] == f"2 problems in {path}:"
    assert sorted(line.endswith("(an override)") for line in lines[1:]) == [False, True]


def test_a_plug_in_of_an_override_lies_in_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("")
    assert load_experiment("ppo_cartpole.yaml", ["plugins=[mine.py]"]).plugins == (str(tmp_path / "mine.py"),)
    with pytest.raises(ConfigError, match=re.escape(f"There is no plug-in file {tmp_path / 'mnie.py'}; did you mean")):
        load_experiment("ppo_cartpole.yaml", ["plugins=[mnie.py]"])

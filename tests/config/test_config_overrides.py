"""Overrides put one value in one place."""

import pytest

from rl4sys.config import ConfigError, load
from rl4sys.experiments import load_experiment

RAW = {"algorithm": {"name": "ppo", "lr": 0.1, "dims": [1, 2]}, "wandb": None}


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("algorithm.lr=3e-4", 3e-4),
        ("algorithm.lr=null", None),
        ("algorithm.lr=[1e-4, 2]", [1e-4, 2]),
        ("algorithm.lr=a=b", "a=b"),
        ("algorithm.lr=true", True),
        ("algorithm.lr='1'", "1"),
        ("algorithm.lr=${algorithm.name}", "ppo"),
    ],
)
def test_the_value_of_an_override_is_yaml(override: str, expected: object) -> None:
    assert load(RAW, [override])["algorithm"]["lr"] == expected


def test_an_override_creates_what_is_missing_on_its_way() -> None:
    values = load(RAW, ["training.eval.episodes=3", "wandb.project=x"])
    assert values["training"] == {"eval": {"episodes": 3}}
    assert values["wandb"] == {"project": "x"}


def test_an_override_replaces_a_whole_mapping_or_list() -> None:
    values = load(RAW, ["algorithm={name: sac}", "wandb=[1]"])
    assert (values["algorithm"], values["wandb"]) == ({"name": "sac"}, [1])
    assert load(RAW, ["algorithm=[1]"])["algorithm"] == [1]


def test_overrides_may_be_a_mapping_nested_or_dotted() -> None:
    values = load(RAW, {"algorithm.lr": 1, "algorithm": {"dims": [3]}, "training": {"eval.episodes": 2}})
    assert values["algorithm"] == {"name": "ppo", "lr": 1, "dims": [3]}
    assert values["training"] == {"eval": {"episodes": 2}}


def test_the_last_override_wins_and_the_source_is_left_alone() -> None:
    assert load(RAW, ["algorithm.lr=1", "algorithm.lr=2"])["algorithm"]["lr"] == 2
    assert RAW["algorithm"]["lr"] == 0.1


@pytest.mark.parametrize("override", ["algorithm.lr.x=1", "algorithm.dims.0=1"])
def test_an_override_through_what_is_no_mapping_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match=r"goes through 'algorithm\.\w+', which is .* and not a mapping; set"):
        load(RAW, [override])


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("algorithm.lr", "has no '='"),
        ("algorithm..lr=1", "has an empty name"),
        ("=1", "has an empty name"),
        ("algorithm.lr=[1", r"The override 'algorithm.lr=\[1', line 1"),
    ],
)
def test_a_malformed_override_is_explained(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(RAW, [override])


@pytest.mark.parametrize(
    ("override", "suggestion"),
    [
        ("algorithm.ent_coef=0.1", "algorithm.entropy_coef"),
        ("algorithm.clip_range=0.1", "algorithm.clip_ratio"),
        ("algorithm.n_steps=2048", "buffer.size"),
        ("learning_rate=1e-3", "algorithm.lr"),
        ("total_timesteps=1e6", "training.total_timesteps"),
    ],
)
def test_names_of_other_libraries_are_translated(override: str, suggestion: str) -> None:
    with pytest.raises(ConfigError, match=rf"unknown key; did you mean '{suggestion}'\?"):
        load_experiment("ppo_cartpole.yaml", [override])

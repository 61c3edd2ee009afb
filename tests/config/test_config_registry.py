"""Registries choose config types by name, inside and outside of other configs."""

import importlib.metadata
from typing import Annotated

import pytest
import yaml

from rl4sys.config import Config, ConfigError, Registry, json_schema, load, parse


class Algorithm(Config):
    """What learns."""


class Environment(Config):
    """What is acted in."""


ALGORITHMS = Registry("algorithm", Algorithm)
ENVIRONMENTS = Registry("environment", Environment, key="wrapper", default="gym")


@ALGORITHMS.register("ppo")
class PPO(Algorithm):
    """Clipped policy gradients."""

    lr: float = 3e-4
    """Step size."""
    clip_ratio: float = 0.2
    hidden_dims: tuple[int, ...] = (64, 64)


@ALGORITHMS.register("Ensemble")
class Ensemble(Algorithm):
    members: tuple[Annotated[Algorithm, ALGORITHMS], ...]


@ENVIRONMENTS.register("gym")
class Gym(Environment):
    name: str
    normalize_obs: bool = False


class Experiment(Config):
    algorithm: Annotated[Algorithm, ALGORITHMS] = PPO()
    """How to learn."""
    environment: Annotated[Environment, ENVIRONMENTS]
    rival: Annotated[Algorithm, ALGORITHMS] | None = None


def problem(**values: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(Experiment, {"environment": {"name": "CartPole-v1"}, **values})
    return str(caught.value)


def test_a_name_in_any_case_gives_the_type() -> None:
    assert ALGORITHMS.type("PPO") is PPO
    assert ALGORITHMS.names() == ("ensemble", "ppo") == tuple(ALGORITHMS)
    assert "Ppo" in ALGORITHMS
    assert len(ALGORITHMS) == 2


def test_an_unknown_name_says_what_is_near_and_what_is_there() -> None:
    with pytest.raises(ConfigError, match=r"unknown algorithm 'pppo'; did you mean 'ppo'\? registered: ensemble, ppo"):
        ALGORITHMS.type("pppo")
    with pytest.raises(ConfigError, match="unknown algorithm 'zzz'; registered: ensemble, ppo; if it is your own"):
        ALGORITHMS.type("zzz")


def test_parsing_takes_the_name_out_and_the_rest_as_settings() -> None:
    assert ALGORITHMS.parse({"name": "PPO", "lr": "1e-3"}) == PPO(lr=1e-3)
    assert ENVIRONMENTS.parse({"name": "CartPole-v1"}) == Gym(name="CartPole-v1")


def test_dumping_is_the_reverse_of_parsing() -> None:
    dumped = ALGORITHMS.dump(PPO(lr=1.0))
    assert dumped == {"name": "ppo", "lr": 1.0, "clip_ratio": 0.2, "hidden_dims": [64, 64]}
    assert ALGORITHMS.parse(dumped) == PPO(lr=1.0)


def test_parsing_names_the_file_of_a_mistake() -> None:
    with pytest.raises(ConfigError, match=r"ppo\.yaml: lr: got 'x'; expected a number"):
        ALGORITHMS.parse({"name": "ppo", "lr": "x"}, source="ppo.yaml")


def test_a_taken_name_tells_who_has_it() -> None:
    with pytest.raises(ConfigError, match=r"'PPO' is already \S*test_config_registry.PPO"):
        ALGORITHMS.register("PPO")(Ensemble)
    assert ALGORITHMS.type("ppo") is PPO


def test_a_reloaded_class_replaces_itself() -> None:
    registry = Registry("algorithm", Algorithm)

    def definition() -> type[Algorithm]:
        @registry.register("own")
        class Own(Algorithm):
            pass

        return Own

    definition()
    newer = definition()
    assert registry.type("own") is newer


def test_a_type_that_cannot_be_an_entry_is_refused() -> None:
    with pytest.raises(TypeError, match="must inherit from"):
        ALGORITHMS.register("gym")(Gym)
    with pytest.raises(TypeError, match="has a field 'name'"):
        Registry("environment", Environment).register("gym")(Gym)


def test_a_mistake_inside_a_chosen_config_keeps_its_dotted_place() -> None:
    clip = {"name": "ppo", "clip_ration": 1}
    assert problem(algorithm=clip) == "algorithm.clip_ration: unknown key; did you mean 'clip_ratio'?"
    deep = {"name": "ensemble", "members": [{"name": "ppo"}, {"name": "ppo", "lr": "x"}]}
    assert problem(rival=deep) == "rival.members.1.lr: got 'x'; expected a number"


def test_a_mistake_in_the_choice_itself_is_clear() -> None:
    assert problem(algorithm={"name": "pp0"}).startswith("algorithm.name: unknown algorithm 'pp0'; did you mean 'ppo'?")
    assert problem(algorithm={}) == "algorithm.name: missing; expected one of ensemble, ppo"
    assert problem(algorithm={"nam": "ppo"}) == "algorithm.nam: unknown key; did you mean 'name'?"
    assert problem(algorithm="ppo") == "algorithm: got 'ppo'; expected a mapping with the key 'name'"
    assert problem(algorithm={"name": 3}).startswith("algorithm.name: unknown algorithm 3; registered")


def test_a_misspelt_key_is_not_taken_for_the_default() -> None:
    misspelt = {"wraper": "dm_control", "name": "CartPole-v1"}
    assert problem(environment=misspelt) == "environment.wraper: unknown key; did you mean 'wrapper'?"


def test_a_config_survives_its_way_through_yaml() -> None:
    raw = {
        "environment": {"name": "CartPole-v1"},
        "rival": {"name": "ensemble", "members": [{"name": "ppo"}]},
    }
    experiment = parse(Experiment, load(raw, ["algorithm.name=ppo", "algorithm.lr=1e-3"]))
    text = yaml.safe_dump(experiment.model_dump(mode="json"), sort_keys=False)
    again = parse(Experiment, load(yaml.safe_load(text)))
    assert again == experiment
    assert again.algorithm == PPO(lr=1e-3)
    assert text.startswith("algorithm:\n  name: ppo\n  lr: 0.001\n")


def test_a_dump_of_what_differs_keeps_the_names() -> None:
    experiment = Experiment(algorithm=PPO(lr=1.0), environment=Gym(name="CartPole-v1"))
    assert experiment.model_dump(exclude_unset=True) == {
        "algorithm": {"name": "ppo", "lr": 1.0},
        "environment": {"wrapper": "gym", "name": "CartPole-v1"},
    }


def test_an_unregistered_config_is_refused_before_it_is_lost_in_a_dump() -> None:
    class Stranger(Algorithm):
        pass

    assert "Stranger is no registered algorithm" in problem(algorithm=Stranger())


def test_the_json_schema_offers_every_entry() -> None:
    algorithm = json_schema(Experiment)["properties"]["algorithm"]
    ensemble, ppo = algorithm["oneOf"]
    assert ppo["properties"]["name"]["const"] == "ppo"
    assert ppo["properties"]["lr"] == {"default": 3e-4, "description": "Step size.", "type": "number"}
    assert ensemble["required"] == ["name", "members"]
    assert algorithm["default"]["name"] == "ppo"
    assert algorithm["description"] == "How to learn."


def test_entries_registered_after_the_model_are_known_to_it() -> None:
    registry = Registry("algorithm", Algorithm, key="type")

    class Late(Config):
        part: Annotated[Algorithm, registry]

    registry.register("ppo")(PPO)
    assert parse(Late, {"part": {"type": "ppo"}}).part == PPO()


def entry_points_of(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    point = importlib.metadata.EntryPoint("own", value, "rl4sys.algorithms")
    monkeypatch.setattr("rl4sys.config.registry.installed", lambda: (point,))


def test_an_installed_package_can_add_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry("algorithm", Algorithm)
    entry_points_of(monkeypatch, f"{__name__}:PPO")
    registry.load_entry_points("rl4sys.algorithms")
    assert registry.type("own") is PPO


@pytest.mark.parametrize("value", ["no_such_module", "json:dumps", "json:nothing"])
def test_a_failing_installed_plugin_is_named(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    entry_points_of(monkeypatch, value)
    with pytest.raises(ConfigError, match=f"The algorithm plug-in 'own' .{value}, from an unknown package. cannot"):
        ALGORITHMS.load_entry_points("rl4sys.algorithms")

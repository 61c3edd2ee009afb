from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rl4sys.algorithms import ALGORITHMS
from rl4sys.client import ClientSettings, SettingsError, load_settings
from rl4sys.client.original_parameters import DQN_NAMES, PPO_NAMES
from rl4sys.experience import ArraySpec
from rl4sys.policy import BoxAction, DiscreteAction, MultiDiscreteAction
from rl4sys.records import Overflow

FLAT: dict[str, Any] = {
    "client_id": "lander",
    "algorithm_name": "PPO",
    "algorithm_parameters": {
        "batch_size": 512,
        "act_dim": 4,
        "seed": 7,
        "traj_per_epoch": 256,
        "clip_ratio": 0.2,
        "gamma": 0.99,
        "lam": 0.95,
        "pi_lr": 0.0003,
        "vf_lr": 0.001,
        "train_pi_iters": 80,
        "train_v_iters": 80,
        "target_kl": None,
        "input_size": 8,
    },
    "act_limit": 1.0,
    "max_traj_length": 1000,
    "type": "onpolicy",
    "train_server_address": "localhost:50051",
    "send_frequency": 10,
}
SECTIONS: dict[str, Any] = {
    "algorithm": "PPO",
    "algorithm_parameters": {
        "learning_rate": 0.0003,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "clip_ratio": 0.2,
        "target_kl": 0.01,
        "entropy_coef": 0.01,
    },
    "network_architecture": {"hidden_sizes": [64, 64], "activation": "tanh"},
    "training": {"batch_size": 64, "epochs": 10},
    "communication": {"server_address": "localhost:50051", "timeout": 10},
}


def with_parameters(**parameters: Any) -> dict[str, Any]:
    return FLAT | {"algorithm_parameters": FLAT["algorithm_parameters"] | parameters}


def test_a_present_config_is_read_completely(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    path = tmp_path / "agent.yaml"
    path.write_text(
        "client_id: router-7\nserver: unix:/run/rl4sys.sock\ntoken_file: token\npolicy_id: routers\n"
        "algorithm: {name: ppo, lr: 0.001}\nnetwork: {actor: {hidden_dims: [32]}}\nbuffer: {size: 512}\n"
        "observation: {queue: 8, image: {dtype: uint8, shape: [4, 4]}}\naction: {sizes: [3, 2]}\naction_mask: true\n"
        "outbox: kept\noverflow: drop_newest\nseed: 3\ntls: {ca: ca.pem}\n"
    )
    settings = load_settings(path)
    assert (settings.client_id, settings.server, settings.token) == ("router-7", "unix:/run/rl4sys.sock", "secret")
    assert settings.parameters["algorithm"] == {"lr": 0.001}
    assert settings.parameters["buffer"] == {"size": 512}
    assert [spec.name for spec in settings.observation] == ["queue", "image", "action_mask"]
    assert settings.action == MultiDiscreteAction((3, 2))
    assert settings.outbox == tmp_path / "kept"
    assert settings.overflow is Overflow.DROP_NEWEST
    assert settings.tls is not None
    assert settings.tls.ca == tmp_path / "ca.pem"


def test_the_token_is_not_part_of_the_repr() -> None:
    assert "secret" not in repr(load_settings({"client_id": "c", "token": "secret"}))


def test_the_flat_original_config_is_translated(tmp_path: Path) -> None:
    path = tmp_path / "luna_conf.json"
    path.write_text(json.dumps(FLAT))
    settings = load_settings(path)
    assert settings.observation == (ArraySpec("observation", "float32", (8,)),)
    assert settings.action == DiscreteAction(4)
    assert settings.parameters == {
        "algorithm": {
            "lr": 0.0003,
            "critic_lr": 0.001,
            "clip_ratio": 0.2,
            "gamma": 0.99,
            "gae_lambda": 0.95,
            "epochs": 80,
            "minibatch_size": 512,
            "episodes_per_update": 256,
            "target_kl": None,
        },
        "buffer": {"size": 256_000},
        "seed": 7,
    }
    assert (settings.max_segment_length, settings.send_frequency, settings.send_interval) == (1000, 10, 1.0)
    assert (settings.server, settings.seed) == ("localhost:50051", 7)


@pytest.mark.parametrize(
    ("second", "first", "name"), [("vf_lr", "pi_lr", "critic_lr"), ("train_v_iters", "train_pi_iters", "critic_epochs")]
)
def test_equal_settings_of_actor_and_critic_need_no_second_optimizer(second: str, first: str, name: str) -> None:
    assert name not in load_settings(with_parameters(**{first: 0.5, second: 0.5})).parameters["algorithm"]
    assert load_settings(with_parameters(**{first: 0.5, second: 0.25})).parameters["algorithm"][name] == 0.25


def test_the_original_config_in_sections_is_translated() -> None:
    settings = load_settings(SECTIONS)
    body = {"type": "mlp", "hidden_dims": [64, 64], "activation": "tanh"}
    assert settings.parameters["network"] == {"actor": body, "critic": body}
    chosen = settings.parameters["algorithm"]
    assert (chosen["lr"], chosen["minibatch_size"], chosen["epochs"]) == (0.0003, 64, 10)
    assert (settings.timeout, settings.observation, settings.action) == (10, (), None)


@pytest.mark.parametrize("values", [FLAT, SECTIONS], ids=["flat", "sections"])
def test_translated_parameters_are_accepted_by_the_algorithm(values: dict[str, Any]) -> None:
    settings = load_settings(values)
    assert settings.algorithm == "ppo"
    ALGORITHMS.type("ppo").model_validate(settings.parameters["algorithm"])


def test_the_known_parameters_are_those_of_the_algorithms() -> None:
    for name, known in (("ppo", PPO_NAMES), ("dqn", DQN_NAMES)):
        assert set(ALGORITHMS.type(name).model_fields) == set(known)


@pytest.mark.parametrize("name", ["DDPG", "TD3", "SAC", "SQL"])
def test_continuous_algorithms_act_within_act_limit(name: str) -> None:
    values = with_parameters() | {"algorithm_name": name, "act_limit": 2.0, "type": "off-policy"}
    values["algorithm_parameters"] = {"act_dim": 2, "input_size": 3}
    assert load_settings(values).action == BoxAction((-2.0, -2.0), (2.0, 2.0))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (with_parameters(clip_ration=0.1), "did you mean 'clip_ratio'"),
        (FLAT | {"type": "offpolicy"}, "PPO is 'onpolicy'"),
        (FLAT | {"send_frequenzy": 3}, "did you mean 'send_frequency'"),
        (FLAT | {"algorithm_name": "PPOO"}, "expected one of ppo"),
        ({"client_id": "a b"}, "client_id"),
        ({"client_id": "c", "sever": "x"}, "did you mean 'server'"),
        ({"client_id": "c", "overflow": "drop-oldest"}, "did you mean 'drop_oldest'"),
        ({"client_id": "c", "timeout": "10"}, "expected a number"),
        ({"client_id": "c", "action": {"n": 3, "low": [0]}}, "expected one of n, sizes"),
        ({"client_id": "c", "action": {"sizes": 3}}, "action.sizes: got 3; expected a list of whole numbers"),
        ({"client_id": "c", "action": {"sizes": [3, 0]}}, "action.sizes: got .*; expected whole numbers, at least 1"),
        ({"client_id": "c", "action": {"n": 3, "start": "one"}}, "action.start: got 'one'; expected a whole number"),
        ({"client_id": "c", "observation": {"queue": "eight"}}, "observation.queue"),
        ({"client_id": "c", "token": "a", "token_file": "b"}, "keep one"),
        ({"client_id": "c", "token": "a", "server": "far.example:1"}, "unencrypted"),
        ({"client_id": "c", "token": "tok\u00e9n"}, "printable ASCII"),
        ({"client_id": "c", "token_file": "/dev/null", "server": "far.example:1"}, "unencrypted"),
        ({"client_id": "c", "buffer": {"size": 3}}, "algorithm.name"),
        *(({"server": wrong}, "expected host:port") for wrong in ("127.0.0.1", "host:99999", "host:0", ":50051")),
    ],
)
def test_wrong_settings_are_named_with_what_was_expected(values: dict[str, Any], expected: str) -> None:
    with pytest.raises(SettingsError, match=expected):
        load_settings(values)


def test_a_file_that_is_missing_or_broken_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(SettingsError, match=r"broken\.json: the file is not valid JSON"):
        load_settings(broken)
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="the file is not text"):
        load_settings(broken)
    with pytest.raises(SettingsError, match="cannot be read"):
        load_settings(tmp_path / "absent.json")


def test_typed_settings_are_returned_unchanged() -> None:
    settings = ClientSettings("c")
    assert load_settings(settings) == settings

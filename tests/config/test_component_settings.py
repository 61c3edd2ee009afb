"""Another type in a higher layer: the settings of the former type are left out, those of the user's own are not."""

from pathlib import Path

import pytest

from rl4sys.config import ConfigError
from rl4sys.experiments import load_experiment
from rl4sys.experiments.config import BaseExperiment
from rl4sys.networks import MlpConfig
from rl4sys.networks.traced_module import ModuleConfig

SHIPPED = "ppo_cartpole.yaml"
OWN = ("network.actor.type=module", "network.actor.module=own_networks:Residual")


def test_a_shipped_config_takes_a_network_of_another_type() -> None:
    config = load_experiment(SHIPPED, OWN)
    assert config.network.actor == ModuleConfig(module="own_networks:Residual")
    assert isinstance(config.network.critic, MlpConfig)


def test_a_file_may_choose_another_type_than_the_one_it_extends(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(f"extends: {SHIPPED}\nnetwork: {{actor: {{type: module, module: 'own_networks:Residual'}}}}\n")
    assert load_experiment(own).network.actor == ModuleConfig(module="own_networks:Residual")


def test_a_setting_that_both_types_have_stays() -> None:
    before, after = load_experiment("qr_dqn_CartPole-v1.yaml"), load_experiment(SHIPPED, ["algorithm.name=qr_dqn"])
    assert type(after.algorithm) is type(before.algorithm)
    assert after.algorithm.lr == load_experiment(SHIPPED).algorithm.lr


def test_a_sweep_may_change_the_type() -> None:
    varied = BaseExperiment(SHIPPED).vary({"network": {"actor": {"type": "module", "module": "own_networks:Residual"}}})
    assert varied.network.actor == ModuleConfig(module="own_networks:Residual")


def test_a_setting_of_another_type_in_the_same_place_as_the_type_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        load_experiment(SHIPPED, [*OWN, "network.actor.hidden_dims=[8]"])
    assert "network.actor.hidden_dims: unknown key; allowed: module, kwargs" in str(refused.value)


def test_the_same_key_is_never_suggested() -> None:
    with pytest.raises(ConfigError) as refused:
        load_experiment(
            {
                "algorithm": {"name": "ppo"},
                "environment": {"name": "CartPole-v1"},
                "network": {"actor": {"type": "module", "module": "own_networks:Residual", "activation": "relu"}},
            }
        )
    assert "did you mean 'network.actor.activation'" not in str(refused.value)

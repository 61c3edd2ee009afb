"""Old configs are brought up to date, step by step."""

import pytest

from rl4sys.config import CONFIG_VERSION, ConfigError, Migrations, migrate


@pytest.fixture
def chain() -> Migrations:
    migrations = Migrations(current=3)

    @migrations.register(from_version=1)
    def rename(values: dict) -> dict:
        values["lr"] = values.pop("learning_rate")
        return values

    @migrations.register(from_version=2)
    def nest(values: dict) -> dict:
        return {"algorithm": values}

    return migrations


def test_an_old_config_takes_every_step(chain: Migrations) -> None:
    raw = {"config_version": 1, "learning_rate": 0.1}
    assert chain.migrate(raw) == {"config_version": 3, "algorithm": {"lr": 0.1}}
    assert raw == {"config_version": 1, "learning_rate": 0.1}


def test_a_newer_config_takes_only_the_steps_it_needs(chain: Migrations) -> None:
    assert chain.migrate({"config_version": 2, "lr": 1}) == {"config_version": 3, "algorithm": {"lr": 1}}
    assert chain.migrate({"config_version": 3, "lr": 1}) == {"config_version": 3, "lr": 1}


def test_a_config_without_a_version_is_the_first(chain: Migrations) -> None:
    assert chain.migrate({"learning_rate": 1})["algorithm"] == {"lr": 1}


def test_a_config_from_the_future_is_refused(chain: Migrations) -> None:
    with pytest.raises(ConfigError, match="config_version: got 4, but this rl4sys knows only versions up to 3"):
        chain.migrate({"config_version": 4})


@pytest.mark.parametrize("version", ["2", 0, True, None, 1.5])
def test_a_version_is_a_whole_number(chain: Migrations, version: object) -> None:
    with pytest.raises(ConfigError, match=r"config_version: got .*; expected a whole number from 1 to 3"):
        chain.migrate({"config_version": version})


def test_a_gap_in_the_chain_is_refused() -> None:
    with pytest.raises(ConfigError, match="no migration from version 1 to 2"):
        Migrations(current=2).migrate({})


def test_a_step_is_registered_once_and_leads_somewhere(chain: Migrations) -> None:
    with pytest.raises(ValueError, match=r"already has a step: chain.<locals>.rename"):
        chain.register(from_version=1)(lambda values: values)
    with pytest.raises(ValueError, match="no step from version 3"):
        chain.register(from_version=3)(lambda values: values)


def test_todays_configs_need_no_step() -> None:
    assert migrate({"a": 1}) == {"config_version": CONFIG_VERSION, "a": 1}

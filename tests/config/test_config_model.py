"""Configs are frozen, strict about kinds of values, and lenient about how numbers are written."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field, ValidationError, field_validator, model_validator

from rl4sys.config import Config, ConfigError, parse


class Wandb(Config):
    enabled: bool = False
    project: str = "rl"


class Settings(Config):
    """All kinds of fields."""

    lr: float = Field(3e-4, gt=0)
    """How far one step goes."""
    steps: int = 10
    hidden_dims: tuple[int, ...] = (64, 64)
    rates: list[float] = Field(default_factory=list)
    weights: dict[str, float] = Field(default_factory=dict)
    activation: Literal["tanh", "relu"] = "tanh"
    entropy: float | Literal["auto"] = "auto"
    limit: int | None = None
    folder: Path = Path("runs")
    wandb: Wandb = Wandb()


def problem(**values: object) -> str:
    with pytest.raises(ConfigError) as caught:
        parse(Settings, values)
    return str(caught.value)


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        Settings().lr = 1.0  # type: ignore[misc]


def test_the_docstring_of_a_field_is_its_description() -> None:
    assert Settings.model_fields["lr"].description == "How far one step goes."


def test_numbers_that_yaml_left_as_text_become_numbers() -> None:
    settings = parse(Settings, {"lr": "3e-4", "rates": ["1e-4", 2], "weights": {"a": "1e-2"}, "entropy": "1e-1"})
    assert (settings.lr, settings.rates, settings.weights, settings.entropy) == (
        3e-4,
        [1e-4, 2],
        {"a": 0.01},
        0.1,
    )


@pytest.mark.parametrize("million", [1e6, "1e6", "1000000", 1_000_000, "1.0e6"])
def test_a_whole_number_may_be_written_with_an_exponent(million: object) -> None:
    settings = parse(Settings, {"steps": million, "limit": million, "hidden_dims": [million]})
    assert (settings.steps, settings.limit, settings.hidden_dims) == (1_000_000, 1_000_000, (1_000_000,))


@pytest.mark.parametrize("value", [2.5, "2.5e-1", True, "many", None])
def test_what_is_no_whole_number_is_refused(value: object) -> None:
    assert "steps: got" in problem(steps=value)
    assert "expected a whole number" in problem(steps=value)


def test_a_truth_value_is_not_a_number_even_inside_a_list() -> None:
    assert problem(hidden_dims=[64, True]) == "hidden_dims.1: got true; expected a whole number"
    assert problem(weights={"a": False}) == "weights.a: got false; expected a number"
    assert problem(entropy=True) == "entropy: got true; expected a number or 'auto'"


@pytest.mark.parametrize("value", ["yes", "true", 1, None])
def test_only_true_and_false_are_truth_values(value: object) -> None:
    assert "wandb.enabled: got" in problem(wandb={"enabled": value})


def test_defaults_are_validated_too() -> None:
    class Wrong(Config):
        lr: float = Field(-1.0, gt=0)

    with pytest.raises(ConfigError, match=r"lr: got -1\.0; expected more than 0"):
        parse(Wrong, {})


def test_an_unknown_key_is_refused_with_what_was_probably_meant() -> None:
    assert problem(activaton="relu") == "activaton: unknown key; did you mean 'activation'?"
    assert problem(wandb={"projet": "x"}) == "wandb.projet: unknown key; did you mean 'project'?"


def test_an_unknown_key_that_is_near_to_nothing_lists_the_allowed_ones() -> None:
    assert problem(wandb={"zzz": 1}) == "wandb.zzz: unknown key; allowed: enabled, project"


def test_a_wrong_choice_lists_the_choices() -> None:
    expected = "activation: got 'tahn'; expected one of 'tanh', 'relu'; did you mean 'tanh'?"
    assert problem(activation="tahn") == expected


def test_a_value_that_fits_no_alternative_is_one_problem() -> None:
    assert problem(entropy="aut") == "entropy: got 'aut'; expected a number or 'auto'; did you mean 'auto'?"


def test_all_problems_are_reported_at_once_with_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(Settings, {"lr": "fast", "wandb": 3, "folder": 5, "rates": ["x"]}, source="ppo.yaml")
    lines = str(caught.value).splitlines()
    assert lines[0] == "4 problems in ppo.yaml:"
    assert lines[1:3] == ["  lr: got 'fast'; expected a number", "  rates.0: got 'x'; expected a number"]


def test_one_problem_names_the_file_on_its_line() -> None:
    with pytest.raises(ConfigError, match=r"^ppo\.yaml: lr: got -1; expected more than 0\.0$"):
        parse(Settings, {"lr": -1}, source="ppo.yaml")


def test_a_missing_value_and_an_own_validator_have_plain_messages() -> None:
    class Batch(Config):
        name: str
        size: int
        parts: int = 1

        @field_validator("size")
        @classmethod
        def _even(cls, size: int) -> int:
            if size % 2:
                raise ValueError("it must be even {as braces may stand here}")
            return size

    with pytest.raises(ConfigError, match=r"name: missing; a value is required\n  size: got 3; it must be even {as"):
        parse(Batch, {"size": 3})


def test_a_problem_of_the_whole_config_needs_no_place() -> None:
    class Range(Config):
        low: int = 0
        high: int = 0

        @model_validator(mode="after")
        def _ordered(self) -> "Range":
            if self.low > self.high:
                raise ValueError(f"low {self.low} is above high {self.high}")
            return self

    with pytest.raises(ConfigError, match=r"^low 1 is above high 0$"):
        parse(Range, {"low": 1})

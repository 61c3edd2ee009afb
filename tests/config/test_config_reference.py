"""The JSON schema and the written reference say what the types and docstrings say."""

from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from rl4sys.config import Config, Registry, json_schema, reference


class Part(Config):
    """A network."""


PARTS = Registry("network part", Part, key="type", default="mlp")


@PARTS.register("mlp")
class MLP(Part):
    """Layers of equal kind."""

    hidden_dims: tuple[int, ...] = (64, 64)
    """Width of each layer."""
    inner: Annotated[Part, PARTS] | None = None


@PARTS.register("none")
class Nothing(Part):
    pass


class Wandb(Config):
    enabled: bool = False
    """Whether to send | keep."""
    tags: tuple[Literal["a", "b"], ...] = ()


class Logging(Config):
    """Where numbers go."""

    wandb: Wandb = Wandb()
    others: dict[str, Wandb] = Field(default_factory=dict)
    folder: Path = Path("runs")


class Experiment(Config):
    """One run."""

    seed: int | None = None
    """The root of
    all chance."""
    gamma: float = Field(ge=0, lt=1)
    mode: Literal["train", "test"] = "train"
    actor: Annotated[Part, PARTS] = MLP()
    parts: tuple[Annotated[Part, PARTS], ...] = ()
    logging: Logging = Field(default_factory=Logging)


@pytest.fixture(scope="module")
def page() -> list[str]:
    return reference(Experiment, title="Settings").splitlines()


def test_the_schema_has_titles_descriptions_and_defaults() -> None:
    schema = json_schema(Experiment)
    assert (schema["title"], schema["description"], schema["required"]) == (
        "Experiment",
        "One run.",
        ["gamma"],
    )
    assert schema["properties"]["logging"]["default"]["folder"] == "runs"
    assert schema["properties"]["mode"] == {"default": "train", "enum": ["train", "test"], "type": "string"}
    assert schema["additionalProperties"] is False
    assert "extends" in schema["properties"]


def test_the_default_entry_needs_no_name_in_the_schema() -> None:
    mlp, nothing = json_schema(Experiment)["properties"]["actor"]["oneOf"]
    assert mlp["required"] == []
    assert nothing["required"] == ["type"]


def test_types_and_defaults_are_readable(page: list[str]) -> None:
    assert "| `seed` | `int` or `null` | `null` | The root of all chance. |" in page
    assert "| `gamma` | `float, ≥ 0, < 1` | required |  |" in page
    assert '| `mode` | `"train"` \\| `"test"` | `"train"` |  |' in page
    assert '| `folder` | `path` | `"runs"` |  |' in page
    assert '| `wandb.tags` | `list["a" or "b"]` | `[]` |  |' in page


def test_a_nested_config_has_a_section_and_dotted_keys(page: list[str]) -> None:
    assert page[page.index("## `logging`") + 2] == "Where numbers go."
    assert "| `wandb.enabled` | `bool` | `false` | Whether to send \\| keep. |" in page
    assert "| `others.*.enabled` | `bool` | `false` | Whether to send \\| keep. |" in page


def test_a_registry_has_one_chapter_with_all_entries(page: list[str]) -> None:
    assert "| `actor` | [network part](#choices-network-part) | `type: mlp` |  |" in page
    assert "| `parts` | `list[network part]` | `[]` |  |" in page
    assert page.count("## Choices: network part") == 1
    assert page[page.index("### `type: mlp`") + 2] == "Layers of equal kind."
    assert "| `hidden_dims` | `list[int]` | `[64, 64]` | Width of each layer. |" in page
    assert page[page.index("### `type: none`") + 2] == "It has no settings."

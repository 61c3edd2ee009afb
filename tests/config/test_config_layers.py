"""Files, overlays and interpolation become one plain mapping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rl4sys.config import ConfigError, Layers, load, origins, read
from rl4sys.config.layers import merged
from rl4sys.experiments import load_with_origins


@pytest.fixture
def write(tmp_path: Path):
    def write_file(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write_file


def test_numbers_with_exponents_are_numbers(write) -> None:
    path = write("a.yaml", "lr: 3e-4\nsteps: 1e6\nrates: [1e-4, -2.5E+3, .5e1, 1_0e2]\nname: 3e-4x")
    assert load(path) == {"lr": 3e-4, "steps": 1e6, "rates": [1e-4, -2500.0, 5.0, 1000.0], "name": "3e-4x"}


def test_a_date_stays_text_and_yes_stays_true(write) -> None:
    assert load(write("a.yaml", "name: 2024-01-01\nflag: yes")) == {"name": "2024-01-01", "flag": True}


def test_json_files_load_too(write) -> None:
    assert load(write("a.json", '{"lr": 3e-4, "tags": ["x"]}')) == {"lr": 3e-4, "tags": ["x"]}


def test_an_empty_file_is_an_empty_mapping(write) -> None:
    assert load(write("a.yaml", "")) == {}


def test_a_sweep_keeps_its_dotted_keys_and_lists_of_lists(write) -> None:
    text = "sweep:\n  algorithm.lr: [1e-4, 3e-4]\n  network.actor.hidden_dims: [[64, 64], [128, 128]]"
    sweep = load(write("sweep.yaml", text))["sweep"]
    assert sweep == {"algorithm.lr": [1e-4, 3e-4], "network.actor.hidden_dims": [[64, 64], [128, 128]]}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "a: 1\nb: [1, 2\nc: 3", r"a\.yaml, line 3, column"),
        ("a.yaml", "a: 1\nb:\n  c: 1\n  c: 2", r"a\.yaml, line 4, column 3: the key 'c' is given twice"),
        ("a.json", '{\n"a": 1,\n}', r"a\.json, line \d, column"),
        ("a.json", '{"a": 1, "a": 2}', r"a\.json: the key 'a' is given twice"),
        ("a.yaml", "- 1\n- 2", r"a\.yaml: got \[1, 2\]; expected a mapping"),
        ("a.yaml", "a: !!python/object:os.system x", r"a\.yaml, line 1"),
        ("a.yaml", "a: \x07", r"a\.yaml: unacceptable character"),
    ],
)
def test_a_broken_file_is_reported_with_its_place(write, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load(write(name, text))


def test_yaml_merge_keys_may_be_overlaid(write) -> None:
    text = "base: &base {x: 1, y: 1}\nmore: &more\n  <<: *base\n  x: 2\nmost:\n  <<: *more\n  y: 3"
    assert load(write("a.yaml", text))["most"] == {"x": 2, "y": 3}


def test_a_file_lies_over_those_it_extends(write) -> None:
    base = write("base.yaml", "a: {x: 1, y: 1}\nl: [1, 2]")
    other = write("sub/other.yaml", "extends: ../base.yaml\na: {y: 2}")
    top = write("top.yaml", "extends: [base.yaml, sub/other.yaml]\na: {z: 3}\nl: [9]\nw: null")
    loaded = read(top)
    assert loaded.values == {"a": {"x": 1, "y": 2, "z": 3}, "l": [9], "w": None}
    assert loaded.sources == (base, other, top)


def test_the_search_path_is_asked_after_the_folder_of_the_file(write, tmp_path: Path) -> None:
    write("packaged/algorithms/ppo.yaml", "algorithm: {name: ppo}")
    top = write("own/top.yaml", "extends: algorithms/ppo.yaml")
    assert load(top, search_path=[tmp_path / "packaged"]) == {"algorithm": {"name": "ppo"}}
    assert load("algorithms/ppo.yaml", search_path=[tmp_path / "packaged"])["algorithm"] == {"name": "ppo"}


def test_a_mapping_can_extend_a_file(write, tmp_path: Path) -> None:
    write("base.yaml", "a: 1\nb: 1")
    raw = {"extends": "base.yaml", "b": 2}
    assert load(raw, search_path=[tmp_path]) == {"a": 1, "b": 2}
    assert raw == {"extends": "base.yaml", "b": 2}


def test_a_missing_file_tells_where_it_was_sought_and_what_is_near(write, tmp_path: Path) -> None:
    write("packaged/algorithms/ppo.yaml", "")
    top = write("top.yaml", "extends: ppo.yaml")
    with pytest.raises(ConfigError) as caught:
        load(top, search_path=[tmp_path / "packaged"])
    assert f"no config 'ppo.yaml', which {top} extends" in str(caught.value)
    assert f"Searched: {tmp_path}/ppo.yaml, {tmp_path}/packaged/ppo.yaml." in str(caught.value)
    assert "Did you mean 'algorithms/ppo.yaml'?" in str(caught.value)


def test_a_misspelt_file_name_is_recognised(write, tmp_path: Path) -> None:
    path = write("ppo_cartpole.yaml", "")
    with pytest.raises(ConfigError, match=r"Did you mean '.*ppo_cartpole\.yaml'"):
        load(path.with_name("ppo_cartpol.yaml"))


def test_a_circle_of_files_is_refused(write) -> None:
    write("a.yaml", "extends: b.yaml")
    with pytest.raises(ConfigError, match=r"extends itself: \S+b\.yaml → \S+a\.yaml → \S+b\.yaml"):
        load(write("b.yaml", "extends: a.yaml"))


def test_extends_must_be_names() -> None:
    with pytest.raises(ConfigError, match="extends: got 3; expected a file name or a list"):
        load({"extends": 3})


def test_a_list_does_not_replace_a_mapping_by_accident(write) -> None:
    write("base.yaml", "network: {actor: {type: mlp}}")
    with pytest.raises(ConfigError, match=r"top.yaml: network.actor: got \[1\], but the config beneath has a map"):
        load(write("top.yaml", "extends: base.yaml\nnetwork: {actor: [1]}"))


def test_interpolation_uses_the_final_values() -> None:
    raw = {"experiment": {"seed": 1}, "name": "run-${experiment.seed}", "seed": "${experiment.seed}"}
    assert load(raw, ["experiment.seed=7"]) == {"experiment": {"seed": 7}, "name": "run-7", "seed": 7}


def test_an_interpolated_section_may_be_overlaid_in_part(write) -> None:
    write("base.yaml", "actor: {type: mlp, dims: [1]}\ncritic: ${actor}")
    values = load(write("top.yaml", "extends: base.yaml\ncritic: {dims: [2]}"))
    assert values["critic"] == {"type": "mlp", "dims": [2]}
    assert load({"actor": {"a": 1, "b": 1}, "critic": "${actor}"}, ["critic.b=2"])["critic"] == {
        "a": 1,
        "b": 2,
    }


@pytest.mark.parametrize("text", ["${no.where}", "${a.b", "${a}", "???"])
def test_a_broken_reference_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^config: a: "):
        load({"a": text})


def test_each_file_is_migrated_by_itself(write) -> None:
    write("base.yaml", "old: 1")

    def migrate(values):
        return {"new" if key == "old" else key: value for key, value in values.items()}

    assert load(write("top.yaml", "extends: base.yaml\nnew: 2"), migrate=migrate) == {"new": 2}


LAYERS: dict[str, tuple[dict[Any, Any], dict[Any, Any], dict[str, Any]]] = {
    "mappings are joined": (
        {"a": {"b": 1, "c": 2}, "d": 3},
        {"a": {"b": 4, "e": None}, "f": {"g": [1]}},
        {"a": {"b": 4, "c": 2, "e": None}, "d": 3, "f": {"g": [1]}},
    ),
    "a list replaces a list": ({"a": [1, {"b": 2}]}, {"a": [3]}, {"a": [3]}),
    "null replaces a mapping": ({"a": {"b": 1}}, {"a": None}, {"a": None}),
    "a mapping replaces null": ({"a": None}, {"a": {"b": {"c": 1}}}, {"a": {"b": {"c": 1}}}),
    "a mapping replaces a number": ({"a": 5}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "a number replaces a mapping": ({"a": {"b": 1}}, {"a": 5}, {"a": 5}),
    "an empty mapping changes nothing": ({"a": {"b": 1}}, {"a": {}, "c": {}}, {"a": {"b": 1}, "c": {}}),
    "a reference replaces a mapping": ({"a": {"b": 1}, "c": 2}, {"a": "${c}"}, {"a": "${c}", "c": 2}),
    "a reference is replaced": ({"a": "${c}", "c": 2}, {"a": 1}, {"a": 1, "c": 2}),
    "a missing value replaces nothing": ({"a": 1}, {"a": "???"}, {"a": 1}),
    "a missing value is replaced": ({"a": "???"}, {"a": {"b": 1}}, {"a": {"b": 1}}),
    "keys are texts": ({1: 2}, {}, {"1": 2}),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layers_become_one(name: str) -> None:
    below, above, expected = LAYERS[name]
    assert merged([("below", below), ("above", above)]) == expected


def test_a_mapping_over_a_reference_changes_a_part_of_what_it_refers_to() -> None:
    below = {"a": {"b": 1, "c": "${.b}", "e": "${f}"}, "d": "${a}", "f": 3}
    values = Layers(below).beneath({"d": {"b": 5}, "f": 4}).values
    assert values == {"a": {"b": 1, "c": 1, "e": 4}, "d": {"b": 5, "c": 5, "e": 4}, "f": 4}


@pytest.mark.parametrize(("below", "above"), [({"a": {"b": 1}}, {"a": [1]}), ({"a": [1]}, {"a": {"b": 1}})])
def test_a_list_and_a_mapping_do_not_mix(below: dict[str, Any], above: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=r"^above: a: got .* but the config beneath has a (list|mapping) here"):
        merged([("below", below), ("above", above)])


def test_layers_are_not_changed_by_what_lies_over_them() -> None:
    layers = Layers({"a": {"b": [1]}, "c": "${a.b}"})
    assert layers.beneath({"a": {"b": [2]}}).values == {"a": {"b": [2]}, "c": [2]}
    assert layers.resolved().values == load({"a": {"b": [1]}, "c": [1]})


def test_the_highest_layer_that_says_something_is_named(tmp_path: Path) -> None:
    (tmp_path / "low.yaml").write_text("a: {x: 1, y: 2}\nb: [1]\nc: {z: 1}\n")
    (tmp_path / "high.yaml").write_text("extends: low.yaml\na: {y: 3}\nc: null\n")
    loaded = read(tmp_path / "high.yaml", {"b": [2]})
    final = {**loaded.values, "d": {"e": 0}}
    low, high = str(tmp_path / "low.yaml"), str(tmp_path / "high.yaml")
    assert origins(loaded, {"b": [2]}, final) == {"a.x": low, "a.y": high, "b": "override", "c": high, "d.e": "default"}


def test_an_experiment_tells_where_its_values_came_from(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "extends: [algorithms/ppo.yaml, environments/cartpole.yaml]\ntraining: {total_timesteps: 10}\n"
    )
    config, origin = load_with_origins(tmp_path / "mine.yaml", ["seed=3"])
    assert config.experiment.seed == 3
    assert origin["experiment.seed"] == "override"
    assert origin["training.total_timesteps"] == str(tmp_path / "mine.yaml")
    assert origin["algorithm.name"].endswith("algorithms/ppo.yaml")
    assert origin["buffer.type"] in ("default", origin["algorithm.name"])
    assert origin["logging.csv"] == "default"

"""Each value of a config can be traced to the file, the override or the default that it came from."""

from __future__ import annotations

from pathlib import Path

from rl4sys.config import origins, read
from rl4sys.experiments import load_with_origins


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

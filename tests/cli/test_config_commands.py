from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from .commands import Here


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text("extends: [algorithms/ppo.yaml, environments/cartpole.yaml]\nalgorithm: {lr: 1e-3}\n")
    return path


def test_show_prints_values_and_where_they_come_from(rl4sys: Here, mine: Path) -> None:
    code, out, _ = rl4sys("config", "show", "mine.yaml", "seed=7", "--given")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert code == 0
    assert rows["algorithm.lr"] == ["0.001", "mine.yaml"]
    assert rows["environment.name"] == ["'CartPole-v1'", "environments/cartpole.yaml"]
    assert rows["experiment.seed"] == ["7", "override"]
    assert "experiment.device" not in rows


def test_show_prints_json_and_accepts_runs(rl4sys: Here, config: Path) -> None:
    assert rl4sys("train", str(config)).code == 0
    facts = json.loads(rl4sys("config", "show", "ppo-Cart", "--json").out)
    assert facts["config"]["algorithm"]["name"] == "ppo"
    assert facts["origins"]["algorithm.name"].endswith("config.yaml")


def test_diff_shows_what_differs_and_fails_like_diff(rl4sys: Here, mine: Path, tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("extends: mine.yaml\nalgorithm: {lr: 2e-3}\nbuffer: {size: 64}\n")
    code, out, _ = rl4sys("config", "diff", "mine.yaml", "other.yaml")
    assert code == 1
    assert [line.split()[0] for line in out.splitlines()] == ["key", "algorithm.lr", "buffer.size"]
    assert json.loads(rl4sys("config", "diff", "mine.yaml", "other.yaml", "--json").out)["algorithm.lr"] == [1e-3, 2e-3]
    assert rl4sys("config", "diff", "mine.yaml", "mine.yaml") == (0, "", "the configs are equal\n")


def test_diff_has_a_dash_where_only_one_has_a_key(rl4sys: Here) -> None:
    _, out, _ = rl4sys("config", "diff", "ppo_CartPole-v1.yaml", "dqn_CartPole-v1.yaml")
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
    assert (rows["algorithm.clip_ratio"], rows["algorithm.double"]) == (["0.2", "–"], ["–", "true"])
    # Not the same as a key without a value.
    assert rows["algorithm.critic_lr"] == ["null", "–"]


@pytest.mark.parametrize("kind", ["experiment", "server", "sweep", "tuning"])
def test_the_schema_describes_every_kind_of_config(rl4sys: Here, kind: str) -> None:
    described = json.loads(rl4sys("config", "schema", "--kind", kind).out)
    assert described["$schema"].endswith("2020-12/schema")
    assert described["properties"]


def test_the_schema_contains_plugins(rl4sys: Here, tmp_path: Path) -> None:
    own = "from rl4sys import register_network\nfrom rl4sys.networks import MlpConfig\n"
    (tmp_path / "own.py").write_text(own + "@register_network('stack')\nclass Stack(MlpConfig):\n    '''Mine.'''\n")
    code, out, _ = rl4sys("config", "schema", "--plugin", "own.py", "-o", "schema.json")
    assert (code, out) == (0, "wrote schema.json\n")
    assert '"const": "stack"' in (tmp_path / "schema.json").read_text()


def test_a_current_file_needs_no_migration(rl4sys: Here, mine: Path) -> None:
    text = mine.read_text()
    assert rl4sys("config", "migrate", "mine.yaml").out == "mine.yaml already has version 1\n"
    assert mine.read_text() == text


def test_an_old_file_is_rewritten_with_a_backup(rl4sys: Here, mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rl4sys.config import MIGRATIONS

    monkeypatch.setattr(MIGRATIONS, "current", 2)
    monkeypatch.setattr(MIGRATIONS, "_steps", {1: lambda values: values | {"training": {"total_timesteps": 5}}})
    text = mine.read_text()
    assert "total_timesteps: 5" in rl4sys("config", "migrate", "mine.yaml", "--dry-run").out
    assert mine.read_text() == text
    out = rl4sys("config", "migrate", "mine.yaml").out
    assert out == "mine.yaml now has version 2; the old file is mine.yaml.v1\n"
    assert mine.with_name("mine.yaml.v1").read_text() == text
    assert yaml.safe_load(mine.read_text())["config_version"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "no_such.yaml"], "There is no config 'no_such.yaml'"),
        (["diff", "mine.yaml", "no_such.yaml"], "There is no config 'no_such.yaml'"),
        (["show", "no-such-run"], "There is no run 'no-such-run'"),
        (["schema", "--kind", "severs"], "--kind severs: there is no such config; did you mean 'server'?"),
        (["migrate", "nowhere.yaml"], "nowhere.yaml cannot be read"),
    ],
)
def test_a_missing_config_is_a_one_line_error(rl4sys: Here, mine: Path, arguments: list[str], message: str) -> None:
    code, out, err = rl4sys("config", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in " ".join(err.split())

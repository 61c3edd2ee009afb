from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from rl4sys.config import ConfigError, packaged_configs
from rl4sys.config.files import read_file
from rl4sys.experiments import check_combination
from rl4sys.laboratory.sweeps.plan import SweepConfig, plan
from rl4sys.laboratory.trials.config import load_many_trials, parse_changes
from rl4sys.laboratory.trials.names import label, short_names
from rl4sys.laboratory.trials.trial import Trial

GRID = """\
# configs/sweeps/ppo_sweep.yaml
base_config: configs/experiments/ppo_cartpole.yaml
sweep:
  algorithm.lr: [1e-4, 3e-4, 1e-3]
  algorithm.clip_ratio: [0.1, 0.2, 0.3]
  network.actor.hidden_dims: [[64, 64], [128, 128], [256, 256]]
parallel_jobs: 4
"""
RANDOM: dict[str, Any] = {
    "base_config": "ppo_cartpole.yaml",
    "sweep": {
        "algorithm.lr": {"log_uniform": [1e-5, 1e-2]},
        "algorithm.gamma": {"uniform": [0.9, 1.0]},
        "algorithm.epochs": {"int": [1, 20]},
        "algorithm.minibatch_size": {"choice": [32, 64]},
    },
    "random": {"trials": 12},
}


def planned(path: Path, values: dict[str, Any], *changes: str) -> tuple[Trial, ...]:
    path = path / "sweep.yaml"
    path.write_text(yaml.safe_dump(values))
    return plan(load_many_trials(SweepConfig, path, "sweeps", parse_changes(changes)))


@pytest.mark.slow
def test_a_grid_over_dotted_keys_and_lists_of_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ppo_sweep.yaml").write_text(GRID)
    config = load_many_trials(SweepConfig, "ppo_sweep.yaml", "sweeps", {})
    trials = plan(config)
    assert (len(trials), config.parallel_jobs, config.place) == (27, 4, Path("runs/ppo_sweep"))
    assert trials[0].label == "lr=0.0001 clip_ratio=0.1 hidden_dims=64x64"
    last = trials[-1].config.model_dump()
    assert (last["algorithm"]["lr"], last["algorithm"]["clip_ratio"]) == (1e-3, 0.3)
    assert last["network"]["actor"]["hidden_dims"] == (256, 256)
    assert len({trial.key for trial in trials}) == 27


def test_changes_of_where_reach_the_sweep_and_its_trials(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text(yaml.safe_dump(RANDOM))
    changes = parse_changes(["where.autoscaling=true", "where.address=head:6379"])
    config = load_many_trials(SweepConfig, tmp_path / "sweep.yaml", "sweeps", changes)
    assert (config.where.autoscaling, config.where.address) == (True, "head:6379")
    assert plan(config)[0].config.where.address == "head:6379"


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.name for path in (packaged_configs() / "sweeps").glob("*.yaml")))
def test_every_shipped_sweep_can_be_planned(name: str) -> None:
    trials = plan(load_many_trials(SweepConfig, name, "sweeps", {}))
    assert len(trials) > 1
    check_combination(trials[0].config)


def test_each_configuration_is_tried_with_each_seed(tmp_path: Path) -> None:
    values = {"base_config": "ppo_cartpole.yaml", "sweep": {"algorithm.lr": [1e-3, 1e-4]}, "seeds": [3, 5]}
    trials = planned(tmp_path, values)
    assert [(trial.label, trial.seed) for trial in trials] == [
        ("lr=0.001", 3),
        ("lr=0.0001", 3),
        ("lr=0.001", 5),
        ("lr=0.0001", 5),
    ]


def test_changes_reach_every_trial(tmp_path: Path) -> None:
    values = {
        "base_config": "ppo_cartpole.yaml",
        "overrides": {"training.total_timesteps": 7, "training.log_frequency": 3},
        "sweep": {"algorithm.lr": [1e-3, 1e-4]},
    }
    trials = planned(tmp_path, values, "training.total_timesteps=1e3", "device=cpu")
    assert len(trials) == 2
    for trial in trials:
        assert (trial.config.training.total_timesteps, trial.config.training.log_frequency) == (1_000, 3)
        assert trial.config.experiment.device == "cpu"


def test_samples_are_within_the_bounds_of_their_range(tmp_path: Path) -> None:
    trials = planned(tmp_path, RANDOM)
    assert len(trials) == 12
    for trial in trials:
        assert 1e-5 <= trial.changes["algorithm.lr"] <= 1e-2
        assert 0.9 <= trial.changes["algorithm.gamma"] <= 1.0
        assert trial.changes["algorithm.epochs"] in range(1, 21)
        assert trial.changes["algorithm.minibatch_size"] in (32, 64)
    below = [trial for trial in trials if trial.changes["algorithm.lr"] < 10**-3.5]
    assert 2 <= len(below) <= 10


def test_more_draws_keep_the_earlier_ones(tmp_path: Path) -> None:
    few = planned(tmp_path, {**RANDOM, "random": {"trials": 5}})
    many = planned(tmp_path, RANDOM)
    assert [trial.key for trial in many[:5]] == [trial.key for trial in few]
    other = planned(tmp_path, {**RANDOM, "random": {"trials": 5, "seed": 1}})
    assert not {trial.key for trial in other} & {trial.key for trial in many}


def test_lists_are_compared_over_the_same_draws(tmp_path: Path) -> None:
    values = {**RANDOM, "sweep": {**RANDOM["sweep"], "algorithm.anneal_lr": [True, False]}, "random": {"trials": 3}}
    trials = planned(tmp_path, values)
    assert len(trials) == 6
    rates = {
        anneal: [trial.changes["algorithm.lr"] for trial in trials if trial.changes["algorithm.anneal_lr"] is anneal]
        for anneal in (True, False)
    }
    assert rates[True] == rates[False]


def test_a_draw_that_comes_again_is_tried_once(tmp_path: Path) -> None:
    values = {**RANDOM, "sweep": {"algorithm.minibatch_size": {"choice": [32, 64]}}}
    assert len(planned(tmp_path, values)) == 2


def test_a_trial_keeps_its_place_when_the_sweep_grows(tmp_path: Path) -> None:
    values = {"base_config": "ppo_cartpole.yaml", "sweep": {"algorithm.lr": [1e-3]}}
    grown = {**values, "sweep": {"algorithm.lr": [1e-4, 1e-3]}, "seeds": [0, 1]}
    assert planned(tmp_path, values)[0].key in {trial.key for trial in planned(tmp_path, grown)}
    longer = planned(tmp_path, values, "training.total_timesteps=5")
    assert planned(tmp_path, values)[0].key != longer[0].key


def test_many_trials_read_the_base_a_fixed_number_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []

    def read(path: Path) -> dict[str, Any]:
        opened.append(path)
        return read_file(path)

    monkeypatch.setattr("rl4sys.config.layers.read_file", read)
    values = {"base_config": "ppo_cartpole.yaml", "sweep": {"algorithm.lr": [1e-3, 1e-4]}}
    planned(tmp_path, values)
    few = len(opened)
    planned(tmp_path, {**values, "seeds": list(range(20))})
    assert len(opened) == 2 * few


def test_every_trial_is_checked_as_a_whole(tmp_path: Path) -> None:
    values = {"base_config": "ppo_cartpole.yaml", "sweep": {"algorithm.gamma": [0.9, 1.5]}}
    with pytest.raises(ConfigError, match=r"algorithm.gamma: got 1.5; expected at most 1"):
        planned(tmp_path, values)
    critic = {"network.critic.hidden_dims": "${network.actor.hidden_dims}"}
    values = {**values, "overrides": critic, "sweep": {"network.actor.hidden_dims": [[32], [64, 64]]}}
    widths = [trial.config.model_dump()["network"]["critic"]["hidden_dims"] for trial in planned(tmp_path, values)]
    assert widths == [(32,), (64, 64)]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sweep": {"algorithm.learning_rate": [1]}}, "algorithm.learning_rate: unknown key"),
        ({"sweep": {"algorithm.lr": [1e-3, 1e-3]}}, "sweep.algorithm.lr: 0.001 is listed twice"),
        ({"sweep": {"algorithm.lr": []}}, "expected a list with at least one value"),
        ({"sweep": {"algorithm.lr": 1e-3}}, "expected a list of values, or one of {uniform"),
        ({"sweep": {"algorithm.lr": {"uniform": [0.1, 0.2]}}}, "add `random: {trials: 20}`"),
        ({"sweep": {"algorithm.lr": {"uniform": [0.2, 0.1]}}, "random": {"trials": 2}}, "the smaller one first"),
        ({"sweep": {"algorithm.lr": {"log_uniform": [0, 0.1]}}, "random": {"trials": 2}}, "expected more than 0"),
        ({"sweep": {"algorithm.epochs": {"int": [1, 2.5]}}, "random": {"trials": 2}}, "expected whole numbers"),
        ({"random": {"trials": 2}}, "no range in `sweep` to sample from"),
        ({"sweep": {"seed": [1, 2]}}, "sweep.seed: set `seeds:"),
        ({"overrides": {"seed": 1}, "seeds": [0]}, "overrides.seed: set `seeds:"),
        ({"overrides": {"experiment": {"directory": "x"}}}, "overrides.experiment.directory: trials are kept together"),
        ({"overrides": {"name": "x"}}, "overrides.name: trials are named after the whole"),
        ({"overrides": [1]}, "expected a mapping"),
        ({"overrides": {"algorithm": {"lr": 1}}}, "overrides.algorithm.lr: sweep.algorithm.lr sets it for every trial"),
        ({"name": "a" * 61}, "expected text of 60 letters or fewer"),
        ({"name": "a/b"}, "expected text that matches"),
        ({"seeds": [1, 1]}, "contains a seed twice"),
        ({"seeds": [-1]}, "expected at least 0"),
        ({"base_config": "ppo_cartpool.yaml"}, "Did you mean 'ppo_cartpole.yaml'"),
        ({"base_config": "ppo_cartpool.yaml"}, "There is no config 'ppo_cartpool.yaml', the base_config of /"),
        ({"sweeps": {}}, "sweeps: unknown key; did you mean 'sweep'"),
    ],
)
def test_an_invalid_sweep_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    values = {"base_config": "ppo_cartpole.yaml", "sweep": {"algorithm.lr": [1e-3]}, **changes}
    with pytest.raises(ConfigError) as refused:
        planned(tmp_path, values)
    assert message in str(refused.value)


def test_overrides_of_the_command_line_are_checked_like_those_of_the_file(tmp_path: Path) -> None:
    values = {"base_config": "ppo_cartpole.yaml", "sweep": {"algorithm.lr": [1e-3]}}
    with pytest.raises(ConfigError, match="directory: trials are kept together; set `directory: …`"):
        planned(tmp_path, values, "directory=elsewhere")
    with pytest.raises(ConfigError, match=r"lr: sweep.algorithm.lr sets it for every trial; remove one"):
        planned(tmp_path, values, "algorithm.lr=3e-3")
    assert planned(tmp_path, values, "seed=7")[0].seed == 7


def test_a_sweep_can_be_given_another_name(tmp_path: Path) -> None:
    (tmp_path / "sweep.yaml").write_text("{base_config: ppo_cartpole.yaml, sweep: {algorithm.lr: [1e-3]}, name: a}")
    assert load_many_trials(SweepConfig, tmp_path / "sweep.yaml", "sweeps", {}, name="b").place == Path("runs/b")


def test_names_are_the_shortest_unique_ones() -> None:
    keys = ["network.actor.hidden_dims", "network.critic.hidden_dims", "algorithm.lr"]
    assert list(short_names(keys).values()) == ["actor.hidden_dims", "critic.hidden_dims", "lr"]
    assert (
        label({"a.lr": 1e-5, "a.on": True, "a.dims": [64, 32], "a.none": None})
        == "lr=1e-05 on=true dims=64x32 none=null"
    )

"""Population-based training: its decisions, copies of runs, and a population that is stopped and continued."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from cli.commands import Here, write_config
from experiments.runs import PPO, values
from rl4sys.config import ConfigError
from rl4sys.experiments import Result, RunDirectory, Screen
from rl4sys.laboratory.run_index.index import record_at
from rl4sys.laboratory.run_index.records import Status
from rl4sys.laboratory.studies.config import PopulationSection, TuneConfig
from rl4sys.laboratory.studies.population import explore, worst_and_best
from rl4sys.laboratory.studies.population_study import run_population
from rl4sys.laboratory.studies.study import StudyFailed
from rl4sys.laboratory.studies.study_summary import TuneSummary, summary_of
from rl4sys.laboratory.trials.config import load_many_trials
from rl4sys.laboratory.trials.launcher import Ended, Outcome, Reported, TrialLaunch
from rl4sys.laboratory.trials.one_process_launcher import OneProcessLauncher
from rl4sys.laboratory.trials.ranges import parse_range
from rl4sys.laboratory.trials.trial import TrialOptions, run_in
from rl4sys.laboratory.trials.view import TrialView
from rl4sys.seeding import Seeds

SPACE = {"algorithm.lr": {"log_uniform": [1e-4, 1e-2]}, "algorithm.epochs": [1, 2, 3]}
SHORT = {"training.total_timesteps": 192, "training.eval_frequency": 64, "training.num_eval_episodes": 1}


class Interrupted(Exception):
    """The process ends here, as if it was killed."""


class KilledAfter(OneProcessLauncher):
    """Ends with an exception before the result of some task is heard of."""

    def __init__(self, tasks: int) -> None:
        super().__init__(lambda: False)
        self._left = tasks

    def events(self, seconds: float) -> Any:
        found = super().events(seconds)
        self._left -= 1
        if self._left < 0:
            raise Interrupted
        return found


@pytest.fixture
def rl4sys(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Here:
    """The command, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    return Here(monkeypatch, capsys)


def write_study(place: Path, **changes: Any) -> TuneConfig:
    write_config(place / "base.yaml", values(PPO, Path("runs")))
    study = {
        "base_config": "base.yaml",
        "space": SPACE,
        "overrides": {**SHORT, "algorithm.critic_lr": "${algorithm.lr}"},
        "population": {"size": 3},
        "directory": str(place / "runs"),
        **changes,
    }
    (place / "study.yaml").write_text(yaml.safe_dump(study))
    return load_many_trials(TuneConfig, place / "study.yaml", "tuning", {})


def train(config: TuneConfig, launcher: Any = None) -> TuneSummary:
    screen = Screen(Console(file=io.StringIO()))
    chosen = launcher or OneProcessLauncher(lambda: False)
    study = run_population(
        config, chosen, lambda over: TrialView(screen, "study", 9, over), lambda: False, TrialOptions()
    )
    return summary_of(study, "study", config.place)


def run_of(config: TuneConfig, number: int) -> RunDirectory:
    (directory,) = (config.place / f"trial-{number:04d}").glob("seed*")
    found = run_in(directory)
    assert found is not None
    return found


def fingerprints(config: TuneConfig, summary: TuneSummary) -> list[Any]:
    results = [Result.read(run_of(config, trial.number).result) for trial in summary.trials]
    return [(result.steps, result.fingerprint) for result in results if result is not None]


def test_the_worst_are_replaced_and_the_best_are_copied() -> None:
    section = PopulationSection(size=8)
    assert worst_and_best({0: 5.0, 1: 1.0, 2: 9.0, 3: 7.0, 4: 2.0, 5: 3.0, 6: 4.0, 7: 6.0}, section) == ([1, 4], [2, 3])
    assert worst_and_best({0: 5.0, 1: None, 2: 9.0, 3: float("nan"), 4: 1.0}, PopulationSection(size=5)) == (
        [1, 3, 4],
        [2],
    )


def test_equally_good_trials_stay() -> None:
    assert worst_and_best({0: 3.0, 1: 3.0, 2: 3.0, 3: 3.0}, PopulationSection(size=4)) == ([], [0])


def test_explored_values_are_neighbours_within_their_ranges() -> None:
    ranges = {
        key: parse_range(key, value)
        for key, value in {"a": {"log_uniform": [1e-4, 1e-2]}, "b": {"int": [1, 9]}, "c": ["x", "y", "z"]}.items()
    }
    section = PopulationSection(resample=0.0)
    found = [
        explore({"a": 9e-3, "b": 2, "c": "y"}, ranges, section, Seeds(draw).generator("explore"), lambda _: None)
        for draw in range(40)
    ]
    assert {round(each["a"], 6) for each in found} == {0.0072, 0.01}
    assert {each["b"] for each in found} == {1, 3}
    assert {each["c"] for each in found} == {"x", "z"}


def test_values_that_do_not_fit_together_are_drawn_again() -> None:
    ranges = {"a": parse_range("a", [1, 2, 3])}

    def check(values: dict[str, Any]) -> None:
        if values["a"] != 3:
            raise ConfigError("only 3")

    rng = Seeds(0).generator("explore")
    assert explore({"a": 2}, ranges, PopulationSection(resample=0.0), rng, check) == {"a": 3}
    assert explore({"a": 1}, ranges, PopulationSection(resample=0.0), rng, check) == {"a": 1}


@pytest.mark.slow
def test_a_population_that_was_killed_decides_and_learns_what_it_would_have(tmp_path: Path) -> None:
    whole = write_study(tmp_path, name="whole")
    expected = train(whole)
    parts = write_study(tmp_path, name="parts")
    for tasks in (2, 3, 1):
        with pytest.raises(Interrupted):
            train(parts, KilledAfter(tasks))
    found = train(parts)
    assert found.trials == expected.trials
    assert [step for step, _ in fingerprints(whole, expected)] != []
    assert fingerprints(parts, found) == fingerprints(whole, expected)
    copies = [trial for trial in found.trials if trial.parent is not None]
    assert copies
    assert sum(trial.status == "finished" for trial in found.trials) == 3


@pytest.mark.slow
def test_a_copy_continues_with_its_settings_and_says_what_it_is_a_copy_of(tmp_path: Path, rl4sys: Here) -> None:
    config = write_study(tmp_path)
    summary = train(config)
    copy = next(trial for trial in summary.trials if trial.parent is not None)
    assert copy.parent is not None
    directory, parent = run_of(config, copy.number), run_of(config, copy.parent)
    manifest = directory.read_manifest()
    assert manifest["parent"] == {"source": str(parent.path), "step": copy.from_step, "whole": True, "parent": None}
    settings = yaml.safe_load(directory.config.read_bytes())
    assert settings["algorithm"]["lr"] == settings["algorithm"]["critic_lr"] == copy.values["algorithm.lr"]
    assert settings["experiment"]["name"] == f"study-trial-{copy.number:04d}"
    steps = [json.loads(line)["step"] for line in directory.metrics.read_text().splitlines()]
    assert steps[0] < (copy.from_step or 0) < steps[-1]
    cause = f"trial {copy.number} took its place, a copy of trial {copy.parent}"
    (replaced,) = (trial for trial in summary.trials if trial.cause == cause)
    assert replaced.status == "given up"
    assert record_at(run_of(config, replaced.number).path)[1].status is Status.PRUNED
    shown = rl4sys("show", str(directory.path)).out
    assert f"a copy of {parent.path} at step {copy.from_step}" in shown


class FailingLauncher(OneProcessLauncher):
    """Every task ends with an error of its own."""

    def events(self, seconds: float) -> Any:
        launch: TrialLaunch | None = self._waiting
        assert launch is not None
        self._waiting = None
        return [Reported(launch.key, {"trial_failed": "ValueError: no"}), Ended(launch.key, Outcome.FAILED, "no")]


def test_a_population_whose_runs_all_fail_ends_with_the_cause(tmp_path: Path) -> None:
    with pytest.raises(StudyFailed, match="failed, the last one with: ValueError: no"):
        train(write_study(tmp_path), FailingLauncher(lambda: False))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trials": 9}, "trials: has no effect with a population"),
        ({"seeds": [1, 2]}, "seeds: runs of a population have consecutive seeds"),
        ({"space": {"network.actor.hidden_dims": [[8], [16]]}}, "cannot change within a run"),
        ({"population": {"size": 3, "perturb": [1.1, 1.2]}}, "expected one factor below 1 and one above"),
        ({"population": {"size": 3, "interval": 100}}, "population.interval is 100, but training.eval_frequency is 64"),
    ],
)
def test_a_population_that_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        write_study(tmp_path, **changes).boundaries()
    assert message in str(refused.value)


@pytest.mark.parametrize("options", [("--on", "ray"), ("--trials", "3"), ("--storage", "s3://bucket/runs")])
def test_options_that_a_population_cannot_follow_are_refused(
    tmp_path: Path, rl4sys: Here, options: tuple[str, ...]
) -> None:
    write_study(tmp_path)
    refused = rl4sys("tune", "study.yaml", *options)
    assert refused.code == 2
    assert "population" in refused.err

"""The journal of a study: used by several processes at once, killed, damaged and resumed."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from rich.console import Console

from laboratory.example_runs import written
from rl4sys.algorithms import ALGORITHMS
from rl4sys.config import ConfigError, packaged_configs
from rl4sys.experiments import MetricRecord, Screen, check_combination
from rl4sys.laboratory.run_index.index import record_at
from rl4sys.laboratory.run_index.records import Status
from rl4sys.laboratory.studies.config import TuneConfig
from rl4sys.laboratory.studies.journal import JOURNAL, distribution, open_study, suggest, values_of
from rl4sys.laboratory.studies.results import summarize_study
from rl4sys.laboratory.studies.study import mark_pruned, run_study
from rl4sys.laboratory.studies.study_record import StudyRecord
from rl4sys.laboratory.studies.trial import SeedReporter
from rl4sys.laboratory.trials.config import load_many_trials
from rl4sys.laboratory.trials.launcher import Outcome
from rl4sys.laboratory.trials.local_launcher import LocalLauncher
from rl4sys.laboratory.trials.ranges import parse_range
from rl4sys.laboratory.trials.trial import TrialOptions
from rl4sys.laboratory.trials.view import TrialView
from rl4sys.seeding import Seeds

WRITER = str(Path(__file__).with_name("journal_writer.py"))
SPACE: dict[str, Any] = {
    "algorithm.lr": {"log_uniform": [1e-5, 1e-1]},
    "network.actor.hidden_dims": [[8], [16, 16]],
}


def write_study(place: Path, **changes: Any) -> TuneConfig:
    values = {"base_config": "ppo_cartpole.yaml", "space": SPACE, "directory": str(place / "runs"), **changes}
    (place / "study.yaml").write_text(yaml.safe_dump(values))
    return load_many_trials(TuneConfig, place / "study.yaml", "tuning", {})


def writer(place: Path, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, WRITER, str(place / "study.yaml"), str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_two_processes_use_one_journal_at_once(tmp_path: Path) -> None:
    config = write_study(tmp_path)
    open_study(config, config.place)
    processes = [writer(tmp_path, 15), writer(tmp_path, 15)]
    numbers = [int(number) for process in processes for number in process.communicate(timeout=180)[0].split()]
    assert [process.returncode for process in processes] == [0, 0]
    assert sorted(numbers) == list(range(30))
    trials = open_study(config, config.place).get_trials()
    assert [trial.number for trial in trials] == list(range(30))
    assert all(trial.value == trial.params["algorithm.lr"] == trial.intermediate_values[1] for trial in trials)


@pytest.mark.slow
def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    config = write_study(tmp_path)
    process = writer(tmp_path, 100_000)
    assert process.stdout is not None
    with process.stdout:
        while process.stdout.readline() != "5\n":
            assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    study = open_study(config, config.place)
    before = len(study.get_trials())
    assert before >= 6
    assert suggest(study, config)[0] == before


def test_an_incomplete_line_at_the_end_is_removed(tmp_path: Path) -> None:
    config = write_study(tmp_path)
    study = open_study(config, config.place)
    number, _ = suggest(study, config)
    with (config.place / JOURNAL).open("ab") as file:
        file.write(b'{"op_code": 6, "worker_id"')
    again = open_study(config, config.place)
    again.tell(number, 1.0)
    assert open_study(config, config.place).get_trials()[number].value == 1.0


def test_a_study_that_is_opened_again_suggests_what_it_would_have(tmp_path: Path) -> None:
    whole = write_study(tmp_path, name="whole", startup_trials=2)
    study = open_study(whole, whole.place)
    expected = []
    for _ in range(6):
        number, values = suggest(study, whole)
        study.tell(number, -abs(values["algorithm.lr"] - 0.01))
        expected.append(values)
    parts = write_study(tmp_path, name="parts", startup_trials=2)
    found = []
    for _ in range(6):
        opened = open_study(parts, parts.place)
        number, values = suggest(opened, parts)
        opened.tell(number, -abs(values["algorithm.lr"] - 0.01))
        found.append(values)
    assert found == expected
    assert len({values["algorithm.lr"] for values in found}) == 6


def test_a_trial_that_was_killed_while_its_values_were_chosen_has_failed(tmp_path: Path) -> None:
    config = write_study(tmp_path, trials=1)
    study = open_study(config, config.place)
    study.ask({"algorithm.lr": FloatDistribution(1e-5, 1e-1, log=True)})
    console = Console(file=io.StringIO())
    run_study(
        config,
        LocalLauncher(1),
        lambda over: TrialView(Screen(console), "study", 1, over),
        lambda: False,
        TrialOptions(),
    )
    (trial,) = summarize_study(config, study).trials
    assert (trial.status, trial.cause) == ("failed", "the study was killed while it chose the values")


def test_a_study_with_other_settings_is_refused(tmp_path: Path) -> None:
    open_study(config := write_study(tmp_path), config.place)
    open_study(write_study(tmp_path, trials=99, pruner={"name": "hyperband"}), config.place)
    open_study(write_study(tmp_path, overrides={"logging.tensorboard": False, "device": "cpu"}), config.place)
    with pytest.raises(ConfigError, match="was started with another base, space, score, seeds or overrides"):
        open_study(write_study(tmp_path, seeds=[1, 2]), config.place)


def test_trials_are_compared_at_the_steps_where_evaluations_were_due(tmp_path: Path) -> None:
    config = write_study(tmp_path)
    study = open_study(config, config.place)
    number, _ = suggest(study, config)
    record = StudyRecord(study, seeds=2, stop_trial=lambda number: None)
    record.begin(number)
    for seed, score in enumerate((5.0, 9.0)):
        reporter = SeedReporter(lambda values: record.note(number, values), 1_000 * seed, 1_000, 300)
        # The second record comes twice: a resumed run evaluates again.
        for step in (320, 640, 640, 1_024):
            reporter.log(MetricRecord(step, {"evaluation/return": score + step / 1024}, {}))
        record.note(number, {"score": score})
    record.end(number, Outcome.FINISHED)
    trial = study.get_trials()[number]
    assert list(trial.intermediate_values) == [300, 600, 1_000, 1_300, 1_600, 2_000]
    assert (trial.intermediate_values[1_000], trial.intermediate_values[2_000], trial.value) == (6.0, 7.5, 7.0)


def test_a_trial_that_an_alert_stopped_counts_with_its_last_evaluation(tmp_path: Path) -> None:
    config = write_study(tmp_path)
    study = open_study(config, config.place)
    record = StudyRecord(study, seeds=1, stop_trial=lambda number: None)
    for place in range(2):
        number, _ = suggest(study, config)
        record.begin(number)
        if place == 0:
            record.note(number, {"evaluation": 5.0, "due": 300})
        record.note(number, {"given_up": "an alert stopped it: enough"})
        record.end(number, Outcome.FINISHED)
    stopped, silent = summarize_study(config, study).trials
    assert (stopped.status, stopped.score, stopped.cause) == ("given up", 5.0, "an alert stopped it: enough")
    assert (silent.status, silent.cause) == ("failed", "an alert stopped it: enough")


def test_a_trial_that_does_badly_is_stopped_and_one_that_was_killed_stays_open(tmp_path: Path) -> None:
    config = write_study(tmp_path, pruner={"name": "median", "startup_trials": 1})
    study = open_study(config, config.place)
    stopped: list[int] = []
    record = StudyRecord(study, seeds=1, stop_trial=stopped.append)
    for evaluation, outcome in ((10.0, Outcome.FINISHED), (1.0, Outcome.STOPPED), (20.0, Outcome.FAILED)):
        number, _ = suggest(study, config)
        record.begin(number)
        record.note(number, {"evaluation": evaluation, "due": 300})
        if outcome is Outcome.FINISHED:
            record.note(number, {"score": evaluation})
        record.end(number, outcome)
    assert stopped == [1]
    assert [trial.state.name for trial in study.get_trials()] == ["COMPLETE", "PRUNED", "RUNNING"]


def test_asha_keeps_one_of_the_trials_that_reach_a_rung(tmp_path: Path) -> None:
    config = write_study(tmp_path, pruner={"name": "asha", "min_steps": 300, "reduction_factor": 2})
    study = open_study(config, config.place)
    stopped: list[int] = []
    record = StudyRecord(study, seeds=1, stop_trial=stopped.append)
    # The third is worst before the first rung, where nothing is pruned, and best at it.
    for early, at_rung in ((5.0, 10.0), (5.0, 1.0), (0.0, 20.0)):
        number, _ = suggest(study, config)
        record.begin(number)
        record.note(number, {"evaluation": early, "due": 100})
        record.note(number, {"evaluation": at_rung, "due": 300})
        if number not in stopped:
            record.note(number, {"score": at_rung})
        record.end(number, Outcome.STOPPED if number in stopped else Outcome.FINISHED)
    assert stopped == [1]
    assert [trial.state.name for trial in study.get_trials()] == ["COMPLETE", "PRUNED", "COMPLETE"]


def test_ranges_become_distributions_and_back() -> None:
    given = {
        "a": {"uniform": [0, 2]},
        "b": {"log_uniform": [1e-5, 1]},
        "c": {"int": [1, 9]},
        "d": {"log_int": [1, 1000]},
        "e": [[64, 64], None, True, "relu"],
    }
    ranges = {key: parse_range(key, value) for key, value in given.items()}
    assert [distribution(range_) for range_ in ranges.values()] == [
        FloatDistribution(0, 2),
        FloatDistribution(1e-5, 1, log=True),
        IntDistribution(1, 9),
        IntDistribution(1, 1000, log=True),
        CategoricalDistribution(["[64, 64]", "null", "true", '"relu"']),
    ]
    chosen = {"a": 1.5, "b": 0.1, "c": 3, "d": 70, "e": "[64, 64]"}
    assert values_of(chosen, ranges) == {**chosen, "e": [64, 64]}


@pytest.mark.parametrize("name", sorted(path.name for path in (packaged_configs() / "tuning").glob("*.yaml")))
def test_every_shipped_search_space_fits_its_base(name: str) -> None:
    needs_data = ALGORITHMS.type(name.removesuffix(".yaml").removesuffix("_population")).needs_data
    config = load_many_trials(TuneConfig, name, "tuning", {"training.data": "episodes.npz"} if needs_data else {})
    for draw in range(2):
        rng = Seeds(draw).generator(name)
        values = {key: range_.draw(rng) for key, range_ in config.ranges().items()}
        check_combination(config.experiment(values))
    assert name.startswith(config.example().model_dump()["algorithm"]["name"])


def test_a_missing_base_is_reported_with_the_option_that_named_it() -> None:
    with pytest.raises(ConfigError, match=r"There is no config 'nowhere.yaml', given by --base\. Searched"):
        load_many_trials(TuneConfig, "ppo.yaml", "tuning", {}, base="nowhere.yaml")


def test_every_shipped_algorithm_has_a_search_space() -> None:
    spaces = {path.stem for path in (packaged_configs() / "tuning").glob("*.yaml")}
    ours = {name for name in ALGORITHMS.names() if ALGORITHMS.type(name).__module__.startswith("rl4sys.")}
    assert ours - spaces == set()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"space": {"algorithm.lr": {"uniform": [1]}}}, "expected two numbers"),
        ({"space": {"algorithm.lr": {"normal": [0, 1]}}}, "expected a list of values, or one of"),
        ({"space": {"experiment.seed": [1, 2]}}, "space.experiment.seed: set `seeds:"),
        ({"seeds": [3, 3]}, "contains a seed twice"),
        ({"pruner": {"name": "mediam"}}, "did you mean 'median'"),
    ],
)
def test_an_invalid_study_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        write_study(tmp_path, **changes).ranges()
    assert message in str(refused.value)


def test_runs_of_a_pruned_trial_are_pruned_and_not_interrupted(tmp_path: Path) -> None:
    cut = written(tmp_path / "trial-0000/seed0/one", [1.0], finished=False)
    done = written(tmp_path / "trial-0000/seed1/two", [1.0])
    mark_pruned(tmp_path / "trial-0000")
    statuses = [record_at(run)[1].status for run in (cut, done)]
    assert statuses == [Status.PRUNED, Status.FINISHED]
    assert not record_at(cut)[1].can_resume

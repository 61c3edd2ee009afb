from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console
from tests.pictures import SavedFigures

from rl4sys.experiments import MetricRecord, NothingToPlot, Result, Screen
from rl4sys.laboratory.sweeps.plan import SweepConfig, plan
from rl4sys.laboratory.sweeps.plot import plot_sweep
from rl4sys.laboratory.sweeps.summary import SweepSummary, summarize
from rl4sys.laboratory.trials.config import load_many_trials
from rl4sys.laboratory.trials.trial import Trial
from rl4sys.laboratory.trials.view import TrialView


def trials_of(place: Path, **changes: Any) -> tuple[Trial, ...]:
    values = {"base_config": "ppo_cartpole.yaml", "directory": str(place), **changes}
    (place / "sweep.yaml").write_text(yaml.safe_dump(values))
    return plan(load_many_trials(SweepConfig, place / "sweep.yaml", "sweeps", {}))


def pretend(trial: Trial, last: float, *, finished: bool = True, steps: Sequence[int] = (50, 100)) -> None:
    """Write the files of a run."""
    run = trial.directory / "run"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(yaml.safe_dump(trial.config.model_dump(mode="json")))
    (run / "manifest.json").write_text("{}")
    Result(100, finished, last, last + 1, 1.0, {}).write(run / "result.json")
    records = [MetricRecord(step, {"evaluation/return": last * step / 100}, {}) for step in steps]
    (run / "metrics.jsonl").write_text("".join(f"{record.to_json()}\n" for record in records))


def test_configurations_are_ordered_by_their_mean_over_seeds(tmp_path: Path) -> None:
    trials = trials_of(tmp_path, sweep={"algorithm.lr": [1e-4, 1e-3, 1e-2]}, seeds=[0, 1])
    for trial, last in zip(trials, [10, 50, 0, 20, 30, 0], strict=True):
        if last:
            pretend(trial, last)
    summary = summarize("sweep", "last", trials, {trials[2].key: "it exploded"})
    rows = [(one.label, one.score, one.finished, one.trials) for one in summary.configurations]
    assert rows == [("lr=0.001", 40.0, 2, 2), ("lr=0.0001", 15.0, 2, 2), ("lr=0.01", None, 0, 2)]
    assert [trial.cause for trial in summary.with_status("failed")] == ["it exploded"]
    assert [trial.key for trial in summary.with_status("waiting")] == [trials[5].key]
    assert summarize("sweep", "best", trials, {}).configurations[0].score == 41.0


def test_a_trial_that_was_stopped_is_interrupted_and_has_no_score(tmp_path: Path) -> None:
    trials = trials_of(tmp_path, sweep={"algorithm.lr": [1e-4]})
    pretend(trials[0], 10, finished=False)
    summary = summarize("sweep", "last", trials, {})
    assert (summary.trials[0].status, summary.trials[0].steps) == ("interrupted", 100)
    assert summary.configurations[0].score is None
    with pytest.raises(NothingToPlot, match="no trial of the sweep is finished"):
        plot_sweep(summary, tmp_path / "sweep.png")


def test_samples_with_equal_labels_are_kept_apart(tmp_path: Path) -> None:
    trials = trials_of(tmp_path, sweep={"algorithm.lr": [1e-3, 1.00001e-3]})
    assert trials[0].label == trials[1].label
    assert len(summarize("sweep", "last", trials, {}).configurations) == 2


def test_the_summary_can_be_read_by_scripts(tmp_path: Path) -> None:
    trials = trials_of(tmp_path, sweep={"network.actor.hidden_dims": [[8], [16]]})
    pretend(trials[0], 10)
    summarize("sweep", "last", trials, {}).write(tmp_path / "summary.json")
    found = json.loads((tmp_path / "summary.json").read_text())
    assert found["configurations"][0]["changes"] == {"network.actor.hidden_dims": [8]}
    assert found["trials"][0]["run"] == str(trials[0].directory / "run")


@pytest.mark.parametrize(
    "changes",
    [
        {"sweep": {"algorithm.lr": [1e-3, 1e-4], "network.actor.hidden_dims": [[8], [16], [32]]}, "seeds": [0, 1]},
        {
            "sweep": {
                "algorithm.lr": {"log_uniform": [1e-5, 1e-2]},
                "algorithm.gamma": {"uniform": [0.9, 1.0]},
                "algorithm.anneal_lr": {"choice": [True, False]},
                "algorithm.max_grad_norm": {"uniform": [0.1, 1.0]},
            },
            "random": {"trials": 10},
        },
    ],
)
def test_grids_and_random_sweeps_can_be_plotted(tmp_path: Path, changes: dict[str, Any]) -> None:
    trials = trials_of(tmp_path, **changes)
    for number, trial in enumerate(trials):
        pretend(trial, 10.0 * number + 1)
    summary: SweepSummary = summarize("sweep", "last", trials, {})
    assert plot_sweep(summary, tmp_path / "sweep.png").read_bytes().startswith(b"\x89PNG")


def test_curves_of_one_evaluation_are_visible_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = trials_of(tmp_path, sweep={"algorithm.lr": [1e-4, 1e-3, 1e-2, 2e-2, 3e-2, 4e-2]})
    for number, trial in enumerate(trials):
        pretend(trial, 10.0 * number, steps=(100,))
    saved = SavedFigures(monkeypatch)
    plot_sweep(summarize("sweep", "last", trials, {}), tmp_path / "sweep.png")
    assert len(saved.visible_lines()) == len(trials)


@pytest.mark.parametrize("terminal", [True, False])
def test_all_trials_are_in_one_view(terminal: bool) -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=terminal, width=110, color_system=None)
    with Screen(console) as screen:
        view = TrialView(screen, "my sweep", 3, done=1)
        view.begin("a", "lr=1, seed 0", 100)
        view.begin("b", "lr=2, seed 0", 100)
        view.update("b", {"step": 40})
        view.update("b", {"warning": "Alert: slow"})
        for metrics in ({"rollout/return": 7.0}, {"evaluation/return": 8.5}):
            view.update("a", {"record": {"step": 50, "metrics": metrics, "timing": {"steps_per_second": 99.0}}})
        view.end("a", "finished, last 8.5, best 8.5")
        view.end("b", "failed: no luck", failed=True)
    text = output.getvalue()
    assert "2/3 lr=1, seed 0: finished, last 8.5, best 8.5" in text
    assert "3/3 lr=2, seed 0: failed: no luck" in text
    assert "lr=2, seed 0: warning: Alert: slow" in text
    if terminal:
        assert "3 of 3 trials, 1 failed" in text
    else:
        assert "lr=2, seed 0: resumes at step 40" in text
        assert "lr=1, seed 0: step 50/100, evaluation 8.5" in text


@pytest.mark.parametrize("terminal", [True, False])
def test_long_settings_are_printed_once(terminal: bool) -> None:
    output = io.StringIO()
    settings = " ".join(f"setting_{number}={number}" for number in range(20))
    with Screen(Console(file=output, force_terminal=terminal, width=400, color_system=None)) as screen:
        view = TrialView(screen, "my study", 1)
        view.begin("a", "trial 0", 100, settings)
        view.end("a", "finished, return 8.5")
    assert output.getvalue().count(settings) == 1
    assert f"trial 0: started, {settings}" in output.getvalue()
    assert "1/1 trial 0: finished, return 8.5" in output.getvalue()

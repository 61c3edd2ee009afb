from __future__ import annotations

import csv
import io
import json
import statistics
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.pictures import SavedFigures

from laboratory.example_runs import written
from rl4sys.laboratory.comparison.comparison import Comparison, NothingToCompare, compare, resolve_metrics
from rl4sys.laboratory.comparison.export import (
    Chosen,
    ExportFormat,
    export,
    improvement_table,
    results_table,
    settings_table,
)
from rl4sys.laboratory.comparison.groups import group
from rl4sys.laboratory.comparison.learning_curves import UnknownPlotFormat, plot_curves
from rl4sys.laboratory.run_index.records import read_record


def chosen_in(root: Path) -> Chosen:
    return [(root, read_record(root, path.name)) for path in sorted(root.iterdir())]


@pytest.fixture
def chosen(tmp_path: Path) -> Chosen:
    """Three seeds of a fast and of a slow learner, and one of another task."""
    for seed in range(3):
        written(tmp_path / f"fast_{seed}", [100.0, 400.0 + seed], seed=seed, lr=1e-3, hidden=[64, 64])
        written(tmp_path / f"slow_{seed}", [50.0, 100.0 * seed], seed=seed, lr=1e-4, hidden=[64, 64])
    written(tmp_path / "other", [-200.0], environment="Pendulum-v1", lr=1e-3, hidden=[64, 64])
    return chosen_in(tmp_path)


@pytest.fixture
def comparison(chosen: Chosen) -> Comparison:
    return compare(chosen, ["return"])


def test_runs_that_differ_in_their_seed_are_one_group(comparison: Comparison) -> None:
    assert [(each.label, len(each.members)) for each in comparison.groups] == [
        ("ppo-CartPole-v1 (lr=0.001)", 3),
        ("ppo-Pendulum-v1", 1),
        ("ppo-CartPole-v1 (lr=0.0001)", 3),
    ]
    assert comparison.differences == {
        "algorithm.lr": [1e-3, 1e-3, 1e-4],
        "environment.name": ["CartPole-v1", "Pendulum-v1", "CartPole-v1"],
        "training.total_timesteps": [200, 100, 200],
    }


def test_scores_are_those_of_the_last_evaluations(comparison: Comparison) -> None:
    fast, _, slow = comparison.scores
    assert (fast.seeds, fast.iqm.value, fast.low, fast.high) == (3, statistics.fmean([400, 401, 402]), 400.0, 402.0)
    assert (slow.seeds, slow.iqm.value, slow.mean) == (3, 100.0, 100.0)
    assert fast.iqm.low is not None
    assert 400.0 <= fast.iqm.low < fast.iqm.value


def test_improvement_compares_runs_of_one_environment_only(comparison: Comparison) -> None:
    odds = {(each.group, each.other): each.probability.value for each in comparison.improvements}
    fast, slow = "ppo-CartPole-v1 (lr=0.001)", "ppo-CartPole-v1 (lr=0.0001)"
    assert odds == {(fast, slow): 1.0, (slow, fast): 0.0}


def test_probabilities_of_both_sides_add_up_with_their_intervals(tmp_path: Path) -> None:
    for seed, (ours, theirs) in enumerate([(1.0, 2.0), (5.0, 2.0), (3.0, 4.0)]):
        written(tmp_path / f"a{seed}", [ours], seed=seed, lr=1)
        written(tmp_path / f"b{seed}", [theirs], seed=seed, lr=2)
    one, other = (odds.probability for odds in compare(chosen_in(tmp_path), ["return"]).improvements)
    assert one.low is not None
    assert one.high is not None
    assert (other.low, other.high) == (1 - one.high, 1 - one.low)
    assert one.value + other.value == pytest.approx(1.0)


def test_a_seed_that_was_run_twice_counts_once(tmp_path: Path) -> None:
    written(tmp_path / "a", [1.0, 2.0], seed=5)
    written(tmp_path / "b", [1.0], seed=5, finished=False)
    written(tmp_path / "c", [1.0], seed=6, finished=False)
    ((only,), remarks) = group(chosen_in(tmp_path))
    assert [member.record.id for member in only.members] == ["a", "c"]
    assert remarks == [
        "b is left out: a has the same config and seed",
        "c is interrupted at step 100 of 100; its values so far are used",
    ]


def test_a_run_that_cannot_be_read_is_left_out_with_a_remark(tmp_path: Path) -> None:
    written(tmp_path / "a", [1.0])
    (written(tmp_path / "b", [1.0]) / "manifest.json").write_text("{")
    groups, (remark,) = group(chosen_in(tmp_path))
    assert len(groups) == 1
    assert remark.startswith("b is left out: its files cannot be read")


def test_if_no_run_can_be_read_the_error_lists_the_reasons(tmp_path: Path) -> None:
    (written(tmp_path / "a", [1.0]) / "config.yaml").write_text("{")
    with pytest.raises(NothingToCompare, match=r"None of these runs can be read:\n  a is left out: its files"):
        compare(chosen_in(tmp_path), ["return"])


def test_metrics_have_short_and_full_names() -> None:
    names = ["evaluation/return", "rollout/return", "train/policy_loss", "train/value_loss", "train/entropy"]
    assert resolve_metrics(["return", "loss"], names) == ("evaluation/return", "train/policy_loss", "train/value_loss")
    assert resolve_metrics(["rollout/return", "entropy"], names) == ("rollout/return", "train/entropy")
    with pytest.raises(NothingToCompare, match="no metric 'speed'; they have: evaluation/return, rollout"):
        resolve_metrics(["speed"], names)


def test_the_plot_is_a_png_with_a_panel_per_metric_and_environment(comparison: Comparison, tmp_path: Path) -> None:
    picture = plot_curves(comparison.groups, comparison.metrics, tmp_path / "deep" / "curves.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    width, height = (int.from_bytes(picture[place : place + 4], "big") for place in (16, 20))
    assert (width, height) == (900, int(150 * (2 * 3.8 + 4 * 0.25)))


def test_a_group_with_a_single_evaluation_is_a_visible_point(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = SavedFigures(monkeypatch)
    plot_curves(comparison.groups, comparison.metrics, tmp_path / "curves.png")
    assert [len(saved.visible_lines(panel)) for panel in (0, 1)] == [2, 1]


@pytest.mark.parametrize("name", ["curves", "curves.doc", "here/"])
def test_an_unknown_image_format_is_refused(comparison: Comparison, tmp_path: Path, name: str) -> None:
    with pytest.raises(UnknownPlotFormat, match=r"ends in \.png, \.pdf or \.svg"):
        plot_curves(comparison.groups, comparison.metrics, tmp_path / name)
    assert not list(tmp_path.glob("curves*"))


def test_json_has_everything(chosen: Chosen, comparison: Comparison) -> None:
    document = json.loads(export(chosen, comparison, ExportFormat.JSON))
    assert len(document["runs"]) == 7
    assert document["runs"][0]["settings"]["algorithm"]["lr"] == 1e-3
    assert document["runs"][0]["metrics"] == {"evaluation/return": 400.0}
    assert document["comparison"]["scores"][0]["iqm"]["value"] == 401.0


def test_csv_has_one_row_per_run(chosen: Chosen, comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(export(chosen, comparison, ExportFormat.CSV))))
    assert [row["id"] for row in rows] == [record.id for _, record in chosen]
    assert [float(row["evaluation/return"]) for row in rows][:3] == [400.0, 401.0, 402.0]


def test_markdown_tables_have_as_many_cells_as_columns(chosen: Chosen, comparison: Comparison) -> None:
    text = export(chosen, comparison, ExportFormat.MARKDOWN)
    tables = [part.splitlines() for part in text.split("## ")[1:]]
    assert [lines[0] for lines in tables] == ["Results", "Probability of improvement", "Settings that differ", "Runs"]
    for lines in tables:
        assert len({line.count("|") for line in lines if line.startswith("|")}) == 1
    assert "| ppo-CartPole-v1 (lr=0.001) | evaluation/return | 3 | 401.0 |" in text


def test_latex_escapes_special_characters(chosen: Chosen, comparison: Comparison) -> None:
    text = export(chosen, comparison, ExportFormat.LATEX)
    assert r"95 \% interval" in text
    assert r"fast\_0 & ppo" in text
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 4
    assert all(line.count("&") == 7 for line in text.splitlines() if "evaluation/return" in line and "to 40" in line)


class Page(HTMLParser):
    """Counts tags that are opened and closed, and keeps texts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_html_is_one_page_with_the_plot_in_it(tmp_path: Path) -> None:
    written(tmp_path / "<b>", [1.0])
    chosen = chosen_in(tmp_path)
    text = export(chosen, compare(chosen, ["return"]), ExportFormat.HTML, b"\x89PNG picture")
    page = Page(text)
    assert page.open == []
    assert "<b>" in page.texts
    assert "data:image/png;base64,iVBORyBwaWN0dXJl" in text


def test_csv_has_settings_and_tidy_has_curves(chosen: Chosen, comparison: Comparison) -> None:
    (first, *_) = csv.DictReader(io.StringIO(export(chosen, comparison, ExportFormat.CSV)))
    assert first["algorithm.lr"] == "0.001"
    rows = list(csv.DictReader(io.StringIO(export(chosen, comparison, ExportFormat.TIDY))))
    assert [(row["run"], row["step"], row["value"]) for row in rows[:2]] == [
        ("fast_0", "100", "100.0"),
        ("fast_0", "200", "400.0"),
    ]


def test_tidy_has_a_column_for_each_setting_that_differs(chosen: Chosen, comparison: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(export(chosen, comparison, ExportFormat.TIDY))))
    found = {(row["run"], row["algorithm.lr"], row["training.total_timesteps"]) for row in rows}
    assert {("fast_0", "0.001", "200"), ("slow_0", "0.0001", "200"), ("other", "0.001", "100")} <= found
    assert {"algorithm.hidden", "environment.name", "experiment.seed"}.isdisjoint(rows[0])


def test_tidy_leaves_settings_empty_for_a_run_without_a_config(tmp_path: Path) -> None:
    for name, lr in (("a", 0.1), ("b", 0.2), ("c", 0.3)):
        written(tmp_path / name, [1.0], lr=lr)
    (tmp_path / "c" / "config.yaml").write_text("{")
    chosen = chosen_in(tmp_path)
    rows = csv.DictReader(io.StringIO(export(chosen, compare(chosen, ["return"]), ExportFormat.TIDY)))
    assert [(row["run"], row["algorithm.lr"]) for row in rows] == [("a", "0.1"), ("b", "0.2"), ("c", "")]


def test_many_groups_are_ranked_and_different_budgets_are_named(tmp_path: Path) -> None:
    for place in range(8):
        written(tmp_path / f"run-{place}", [1.0] * (1 + (place == 0)) + [float(place)], lr=place / 10)
    comparison = compare(chosen_in(tmp_path), ["return"])
    ranked = [float(row[3]) for row in results_table(comparison).rows]
    assert ranked == sorted(ranked, reverse=True)
    assert len(improvement_table(comparison).rows) == 7
    assert len(settings_table(comparison).rows) == 8
    assert any("budgets differ" in remark and "300" in remark for remark in comparison.remarks)

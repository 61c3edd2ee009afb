from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.cli.commands import Here
from tests.laboratory.example_runs import written

from rl4sys.laboratory.run_index.index import record_at
from rl4sys.ui.metric_curves import MetricCurves
from rl4sys.ui.run_comparison import RunComparisons

from .conftest import Open

NAMES = [f"{algorithm}-{seed}" for algorithm in ("ppo", "dqn") for seed in (0, 1, 2)]
QUERY = "&".join(f"run=runs/{name}" for name in NAMES)


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1, 2):
        written(Path("runs") / f"ppo-{seed}", [100.0, 200.0 + seed, 400.0 - 7 * seed], seed=seed, lr=0.001)
        written(Path("runs") / f"dqn-{seed}", [50.0, 390.0 + 5 * seed], seed=seed, algorithm="dqn")
    return Path("runs")


@pytest.fixture
def client(pages: Open, runs: Path) -> TestClient:
    return pages(runs)


def test_the_json_is_that_of_the_command(client: TestClient, rl4sys: Here) -> None:
    printed = json.loads(rl4sys("compare", *NAMES, "--json").out)
    del printed["picture"]
    assert client.get(f"/compare.json?{QUERY}").json() == printed


def test_metrics_by_short_names_are_those_of_the_command(client: TestClient, rl4sys: Here, runs: Path) -> None:
    for name in NAMES:
        record = {"step": 400, "metrics": {"train/loss": 1.0, "train/value_loss": 2.0}, "timing": {}}
        with (runs / name / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(record) + "\n")
    printed = json.loads(rl4sys("compare", *NAMES, "--metrics", "return,loss", "--json").out)
    del printed["picture"]
    assert client.get(f"/compare.json?{QUERY}&metrics=return,loss").json() == printed


def test_the_page_shows_results_improvements_and_settings(client: TestClient) -> None:
    text = client.get(f"/compare?{QUERY}").text
    assert "2 experiments,\n  6 runs" in text
    assert "Probability of improvement" in text
    assert "<td>algorithm.lr</td>" in text.replace("\n", "")
    assert "budgets differ" in text


def test_runs_can_be_chosen_by_conditions(client: TestClient) -> None:
    groups = client.get("/compare.json?filter=algorithm%3Ddqn").json()["groups"]
    assert [len(group["runs"]) for group in groups] == [3]


def test_tables_are_there_as_csv(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get(f"/compare.csv?{QUERY}").text)))
    assert [row["seeds"] for row in rows] == ["3", "3"]
    assert client.get(f"/compare.csv?table=settings&{QUERY}").text.startswith("setting,")
    assert client.get(f"/compare.csv?table=other&{QUERY}").status_code == 404


@pytest.mark.parametrize("format_", ["markdown", "latex", "csv", "tidy", "json"])
def test_exports_are_those_of_the_command(client: TestClient, rl4sys: Here, format_: str) -> None:
    printed = rl4sys("export", *NAMES, "--format", format_).out
    assert client.get(f"/compare/export?format={format_}&{QUERY}").text == printed


def test_charts_get_bands_at_common_steps_and_seeds_on_demand(client: TestClient) -> None:
    found = client.get(f"/compare/curves.json?{QUERY}").json()
    (panel,) = found["panels"]
    dqn = panel["groups"][1]
    assert len(panel["steps"]) == len(dqn["middle"]) == len(dqn["low"])
    assert dqn["middle"][-1] is None, "DQN ends at step 200, PPO at 300"
    assert dqn["seeds"] == []
    (panel,) = client.get(f"/compare/curves.json?seeds=1&{QUERY}").json()["panels"]
    assert len(panel["groups"][1]["seeds"]) == 3


def test_a_comparison_is_computed_again_when_a_run_has_changed(runs: Path) -> None:
    comparisons = RunComparisons(MetricCurves())
    chosen = [record_at(runs / name) for name in NAMES]
    first = comparisons.of(chosen, ["return"])
    assert comparisons.of(chosen, ["return"]) is first
    with (runs / "ppo-0" / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": 400, "metrics": {"evaluation/return": 999.0}, "timing": {}}) + "\n")
    again = comparisons.of(chosen, ["return"])
    assert again.comparison.scores[0].high == 999.0


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("filter=algorithm%3Dsac", "No run meets these conditions."),
        ("filter=algoritm%3Dsac", "there is no field"),
        ("run=runs/gone", "There is no run"),
        (f"metrics=nothing&{QUERY}", "These runs have no metric"),
    ],
)
def test_what_cannot_be_compared_is_one_sentence(client: TestClient, query: str, sentence: str) -> None:
    answer = client.get(f"/compare?{query}")
    assert (answer.status_code, sentence in answer.text) == (400, True)
    assert client.get(f"/compare.json?{query}").status_code in (400, 404)


def test_without_runs_the_page_says_how_to_choose_them(client: TestClient) -> None:
    assert "Choose runs on the page" in client.get("/compare").text


def test_names_are_escaped(pages: Open, tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    for seed in (0, 1):
        written(tmp_path / "runs" / f"a-{seed}", [1.0], seed=seed, algorithm=hostile, environment=hostile, lr=hostile)
        written(tmp_path / "runs" / f"b-{seed}", [1.0], seed=seed, environment=hostile, lr="<img src=x>")
    text = pages(tmp_path / "runs").get("/compare?filter=id%3D*").text
    assert "<script>alert" not in text
    assert "<img" not in text

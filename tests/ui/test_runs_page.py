from __future__ import annotations

import csv
import io
import re
import shutil
from pathlib import Path

import pytest
from tests.cli.commands import Here
from tests.laboratory.example_runs import written

from rl4sys.laboratory.run_index.index import FILE, discard
from rl4sys.laboratory.run_index.labels import change_labels

from .conftest import Open


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four runs in `runs`, as a user has them in the working directory."""
    monkeypatch.chdir(tmp_path)
    for seed, last in enumerate((500.0, 420.0)):
        written(Path("runs") / f"ppo-{seed}", [100.0, last], seed=seed)
    written(Path("runs") / "dqn-0", [50.0, 60.0], algorithm="dqn")
    written(Path("runs") / "sac-0", [10.0], algorithm="sac", environment="Pendulum-v1", finished=False)
    return Path("runs")


def test_the_page_lists_runs_with_status_and_returns(pages: Open, runs: Path) -> None:
    text = pages(runs).get("/runs").text
    assert "4 runs" in text
    assert all(f">{name}</a>" in text for name in ("ppo-0", "ppo-1", "dqn-0", "sac-0"))
    assert '<span class="status interrupted">interrupted</span>' in text
    assert "500.0" in text


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("", ()),
        ("filter=algorithm%3Dppo+return%3E450", ("algorithm=ppo", "return>450")),
        ("sort=return&limit=2", ("--sort", "return", "--limit", "2")),
        ("sort=-return", ("--sort", "-return")),
        ("sort=-evaluation/return", ("--sort", "-evaluation/return")),
        ("filter=training.total_timesteps%3E100&sort=best", ("training.total_timesteps>100", "--sort", "best")),
    ],
)
def test_the_json_is_that_of_the_command(
    pages: Open, runs: Path, rl4sys: Here, query: str, options: tuple[str, ...]
) -> None:
    assert pages(runs).get(f"/runs.json?{query}").text == rl4sys("list", *options, "--json").out


@pytest.mark.parametrize(
    ("sort", "direction", "next_sort"),
    [("return", "descending", "-return"), ("-return", "ascending", "return"), ("id", "ascending", "-id")],
)
def test_a_heading_shows_the_order_and_reverses_it(
    pages: Open, runs: Path, sort: str, direction: str, next_sort: str
) -> None:
    text = pages(runs).get(f"/runs?sort={sort}").text
    assert re.findall(r'aria-sort="(\w+)"><a href="/runs\?filter=&amp;sort=([\w-]+)"', text) == [(direction, next_sort)]


def test_the_csv_has_the_same_values(pages: Open, runs: Path) -> None:
    client = pages(runs)
    change_labels(runs / "ppo-0", lambda labels: labels.tagged(["good", "keep"]))
    values = client.get("/runs.json?sort=name").json()
    rows = list(csv.DictReader(io.StringIO(client.get("/runs.csv?sort=name").text)))
    assert [row["id"] for row in rows] == [value["id"] for value in values]
    assert rows[[row["id"] for row in rows].index("ppo-0")]["tags"] == "good keep"
    assert list(rows[0]) == list(values[0])


def test_a_condition_that_cannot_be_parsed_is_explained_on_the_page(pages: Open, runs: Path) -> None:
    answer = pages(runs).get("/runs?filter=algoritm%3Dppo")
    assert answer.status_code == 400
    assert "there is no field &#39;algoritm&#39;; did you mean" in answer.text
    assert 'value="algoritm=ppo"' in answer.text


def test_a_quotation_mark_without_a_partner_is_explained(pages: Open, runs: Path) -> None:
    assert "a quotation mark is missing" in pages(runs).get("/runs?filter=%27return%3E400").text


def test_long_lists_are_divided_into_pages(pages: Open, tmp_path: Path) -> None:
    for number in range(101):
        written(tmp_path / f"run-{number:03}")
    client = pages(tmp_path)
    assert "101 runs" in client.get("/runs?sort=id").text
    last = client.get("/runs?sort=id&page=2").text
    assert last.count('name="run"') == 1
    assert "run-100" in last


def test_a_directory_without_runs_says_how_to_train_one(pages: Open, tmp_path: Path) -> None:
    assert "There are no runs in" in pages(tmp_path).get("/runs").text


def test_a_missing_directory_is_one_sentence_and_appears_when_it_is_made(pages: Open, tmp_path: Path) -> None:
    client = pages(tmp_path / "runs")
    missing = client.get("/runs")
    assert (missing.status_code, "There is no directory" in missing.text) == (404, True)
    written(tmp_path / "runs" / "ppo-0", [1.0])
    assert "ppo-0" in client.get("/runs").text


def test_a_damaged_index_is_rebuilt_and_the_page_says_so(pages: Open, runs: Path) -> None:
    client = pages(runs)
    client.get("/runs")
    discard(runs)
    (runs / FILE).write_bytes(b"not a database at all, but long enough to look like one" * 40)
    text = client.get("/runs").text
    assert "is damaged" in text
    assert "4 runs" in text


def test_several_directories_have_a_tab_each(pages: Open, runs: Path, tmp_path: Path) -> None:
    written(tmp_path / "team" / "runs" / "td3-0", algorithm="td3")
    client = pages(runs, tmp_path / "team" / "runs")
    assert "td3-0" not in client.get("/runs").text
    assert "td3-0" in client.get("/runs?in=runs-2").text
    assert client.get("/runs?in=elsewhere").status_code == 404


def test_names_are_escaped(pages: Open, tmp_path: Path) -> None:
    run = written(tmp_path / "run-0", algorithm="<script>alert(1)</script>", environment="\"><img src=x onerror='1'>")
    change_labels(run, lambda labels: labels.tagged(["good"]))
    text = pages(tmp_path).get("/runs?filter=%22%3Cimg%3E").text + pages(tmp_path).get("/runs").text
    assert "<script>alert" not in text
    assert "<img" not in text


def test_removed_runs_leave_the_page(pages: Open, runs: Path) -> None:
    assert "4 runs" in pages(runs).get("/runs").text
    shutil.rmtree(runs / "dqn-0")
    assert "3 runs" in pages(runs).get("/runs").text

from __future__ import annotations

import csv
import html
import io
import json
import re
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.cli.commands import Here
from tests.laboratory.example_runs import train, written

from rl4sys.laboratory.run_index.labels import read_labels

from .conftest import Open

HOSTILE = '"><img src=x onerror=alert(1)></script><script>alert(1)</script>{{ 7*7 }}'


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for seed in (0, 1):
        written(Path("runs") / f"ppo-{seed}", [100.0, 400.0 + seed], seed=seed, lr=0.001)
    return Path("runs")


@pytest.fixture
def client(pages: Open, runs: Path) -> TestClient:
    return pages(runs)


def test_the_page_shows_status_returns_and_seeds(client: TestClient) -> None:
    text = client.get("/run/runs/ppo-0").text
    assert "<h1>ppo-0</h1>" in text
    assert '<span class="status finished">finished</span>' in text
    assert 'href="/run/runs/ppo-1"' in text
    assert "400.0" in text


@pytest.mark.parametrize("view", ["curves", "settings", "evaluations", "videos", "output", "machine"])
def test_every_view_is_an_address(client: TestClient, view: str) -> None:
    answer = client.get(f"/run/runs/ppo-0?view={view}")
    assert answer.status_code == 200
    assert 'aria-current="page"' in answer.text


def test_an_unknown_view_names_those_that_there_are(client: TestClient) -> None:
    answer = client.get("/run/runs/ppo-0?view=weights")
    assert (answer.status_code, "there are curves, settings" in answer.text) == (404, True)


def test_the_json_is_that_of_the_command(client: TestClient, rl4sys: Here) -> None:
    assert client.get("/run/runs/ppo-0.json").text == rl4sys("show", "ppo-0", "--json").out


def test_tables_have_the_same_rows_as_json_and_csv(client: TestClient, runs: Path) -> None:
    event = {"time": "2026-01-01T12:00:00", "step": 100, "event": "alert", "rule": "slow"}
    (runs / "ppo-0" / "events.jsonl").write_text(json.dumps(event) + "\n")
    page = client.get("/run/runs/ppo-0").text
    assert "ppo-0.csv?table=events" in page
    assert "ppo-0.csv?table=seeds" in page
    for table in ("settings", "evaluations", "seeds", "metrics", "events"):
        values = client.get(f"/run/runs/ppo-0.json?table={table}").json()
        rows = list(csv.DictReader(io.StringIO(client.get(f"/run/runs/ppo-0.csv?table={table}").text)))
        assert len(rows) == len(values) > 0


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_an_unknown_table_is_one_sentence(client: TestClient, ending: str) -> None:
    answer = client.get(f"/run/runs/ppo-0.{ending}?table=weights")
    assert (
        answer.status_code,
        "There is no table &#39;weights&#39; on this page; there are settings" in answer.text,
    ) == (
        404,
        True,
    )


def test_curves_are_there_as_tables(client: TestClient) -> None:
    found = client.get("/run-curves/runs/ppo-0.json?metric=evaluation/return").json()
    assert [(row["step"], row["value"]) for row in found] == [(100, 100.0), (200, 400.0)]
    assert client.get("/run-curves/runs/ppo-0.csv").text.splitlines()[1] == "100,evaluation/return,100.0"


def test_a_real_run_says_where_its_settings_came_from(pages: Open, tmp_path: Path) -> None:
    run = train(tmp_path / "runs")
    rows = pages(tmp_path / "runs").get(f"/run/runs/{run.name}.json?table=settings").json()
    origins = {row["key"]: row["origin"] for row in rows}
    assert origins["training.total_timesteps"] == "config"
    assert origins["algorithm.gae_lambda"] == "default"


def test_settings_of_the_command_line_are_known(client: TestClient, runs: Path) -> None:
    manifest = runs / "ppo-0" / "manifest.json"
    command = ["rl4sys", "train", "--algorithm", "ppo", "--seed=3", "algorithm.lr=0.001"]
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"command": command, "given": []}))
    rows = client.get("/run/runs/ppo-0.json?table=settings").json()
    typed = {row["key"] for row in rows if row["origin"] == "command line"}
    assert typed == {"algorithm.name", "algorithm.lr", "experiment.seed"}


def test_a_failed_run_shows_its_cause_and_the_resume_command(client: TestClient, runs: Path) -> None:
    run = written(runs / "dqn-0", [1.0], algorithm="dqn", finished=False)
    checkpoint = run / "checkpoints" / "000000000100"
    checkpoint.mkdir()
    (checkpoint / "manifest.json").write_text("{}")
    process = {
        "host": "lab",
        "pid": 1,
        "birth": 1,
        "created": 1.0,
        "started": 1.0,
        "ended": 5.0,
        "cause": "Diverged: NaN",
    }
    (run / "process.json").write_text(json.dumps(process))
    text = client.get("/run/runs/dqn-0").text
    assert "It failed: Diverged: NaN" in text
    assert 'data-copy="rl4sys resume runs/dqn-0"' in text


def label(client: TestClient, **fields: str) -> int:
    token = re.search(r'name="form_token" value="([^"]+)"', client.get("/run/runs/ppo-0").text)
    assert token is not None
    form = {"form_token": token[1], **fields}
    origin = {"Origin": "http://127.0.0.1:8265"}
    return client.post("/run-labels/runs/ppo-0", data=form, headers=origin, follow_redirects=False).status_code


def test_tags_and_notes_can_be_changed(client: TestClient, runs: Path) -> None:
    assert label(client, tags="good keep", note="the best so far") == 303
    assert label(client, tags="keep", note="") == 303
    labels = read_labels(runs / "ppo-0")
    assert (labels.tags, [note.text for note in labels.notes]) == (("keep",), ["the best so far"])


def test_a_wrong_tag_is_one_sentence(client: TestClient, runs: Path) -> None:
    assert label(client, tags="<b>", note="") == 400
    assert read_labels(runs / "ppo-0").tags == ()


def test_labels_cannot_be_changed_by_another_site_or_without_a_token(client: TestClient, runs: Path) -> None:
    path, fields = "/run-labels/runs/ppo-0", {"tags": "bad", "form_token": "guessed"}
    assert client.post(path, data=fields, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post(path, data=fields, headers={"Origin": "http://127.0.0.1:8265"}).status_code == 409
    assert read_labels(runs / "ppo-0").tags == ()


def test_known_files_are_sent_and_no_others(client: TestClient, runs: Path) -> None:
    (runs / "secret.txt").write_text("secret")
    (runs / "ppo-0" / "notes.txt").write_text("not listed")
    (runs / "ppo-0" / "output.txt").symlink_to(Path("..") / "secret.txt")
    assert client.get("/run-file/runs/ppo-0?name=config.yaml").status_code == 200
    for name in ("../secret.txt", "notes.txt", "output.txt", "/etc/passwd", "videos/../config.yaml", ""):
        answer = client.get("/run-file/runs/ppo-0", params={"name": name})
        assert (answer.status_code, "secret" in answer.text.replace(name, "")) == (404, False)


def test_a_run_outside_the_directory_is_unknown(client: TestClient, tmp_path: Path) -> None:
    written(tmp_path / "other" / "ppo-9")
    for address in ("/run/runs/../other/ppo-9", "/run/runs/%2e%2e/other/ppo-9", "/run/runs//etc", "/run/else/ppo-0"):
        assert client.get(address).status_code == 404


def test_a_run_that_was_removed_is_one_sentence(client: TestClient, runs: Path) -> None:
    assert client.get("/run/runs/ppo-1").status_code == 200
    shutil.rmtree(runs / "ppo-1")
    for address in ("/run/runs/ppo-1", "/run/runs/ppo-1?view=settings", "/run-curves/runs/ppo-1.json"):
        answer = client.get(address)
        assert answer.status_code == 404
        assert "There is no run &#39;ppo-1&#39; in runs; it may have been removed." in answer.text


def test_everything_of_a_run_is_escaped(pages: Open, tmp_path: Path) -> None:
    run = written(tmp_path / "runs" / "run-0", [1.0], algorithm=HOSTILE, environment=HOSTILE, setting=HOSTILE)
    (run / "output.txt").write_text(HOSTILE)
    (run / "error.txt").write_text(HOSTILE)
    (run / "labels.json").write_text(json.dumps({"tags": [HOSTILE], "notes": [{"time": HOSTILE, "text": HOSTILE}]}))
    event = {"time": HOSTILE, "step": 1, "event": HOSTILE, "reason": HOSTILE}
    (run / "events.jsonl").write_text(json.dumps(event) + "\n")
    manifest = json.loads((run / "manifest.json").read_text())
    given = {"command": ["rl4sys", HOSTILE], "platform": HOSTILE, "packages": {HOSTILE: HOSTILE}, "inexact": [HOSTILE]}
    (run / "manifest.json").write_text(json.dumps(manifest | given))
    (run / "metrics.jsonl").write_text(json.dumps({"step": 1, "metrics": {HOSTILE: 1.0}, "timing": {}}) + "\n")
    client = pages(tmp_path / "runs")
    for view in ("curves", "settings", "evaluations", "videos", "output", "machine"):
        text = client.get(f"/run/runs/run-0?view={view}").text
        assert "<img" not in text
        assert "<script>alert" not in text
        assert ">49" not in text


def test_a_damaged_run_still_has_a_page(client: TestClient, runs: Path) -> None:
    for name in ("config.yaml", "manifest.json", "labels.json", "process.json", "result.json"):
        (runs / "ppo-1" / name).write_text("{ damaged")
    for view in ("curves", "settings", "evaluations", "output", "machine"):
        answer = client.get(f"/run/runs/ppo-1?view={view}")
        assert answer.status_code == 200
    assert "its files cannot be read" in answer.text


def test_links_to_runs_lead_to_the_directory_of_the_run(pages: Open, tmp_path: Path) -> None:
    written(tmp_path / "team" / "sac-0", [1.0], algorithm="sac")
    written(tmp_path / "runs" / "ppo-0", [1.0])
    client = pages(tmp_path / "team", tmp_path / "runs")
    links = _links_to_runs(client.get("/run/runs/ppo-0").text)
    assert links == ["/runs?in=runs", "/runs?filter=algorithm%3Dppo&in=runs", "/runs?filter=env%3DCartPole-v1&in=runs"]
    assert all(">ppo-0</a>" in client.get(link).text for link in links)


@pytest.mark.parametrize("environment", ["my lab:Queue of 'two'", 'a"b & c#d?e', "plain"])
def test_links_find_runs_whatever_their_environment_is_called(pages: Open, tmp_path: Path, environment: str) -> None:
    written(tmp_path / "runs" / "ppo-0", [1.0], environment=environment)
    written(tmp_path / "runs" / "ppo-1", [1.0])
    client = pages(tmp_path / "runs")
    answer = client.get(_links_to_runs(client.get("/run/runs/ppo-0").text)[-1])
    assert (answer.status_code, ">ppo-0</a>" in answer.text, ">ppo-1</a>" in answer.text) == (200, True, False)


def test_a_run_whose_name_has_special_characters_can_be_labelled(pages: Open, tmp_path: Path) -> None:
    written(tmp_path / "runs" / "a #1 of 50%", [1.0])
    client = pages(tmp_path / "runs")
    address = "/run/runs/a%20%231%20of%2050%25"
    text = client.get(address).text
    action = html.unescape(re.findall(r'<form method="post" action="([^"]+)"', text)[0])
    token = re.findall(r'name="form_token" value="([^"]+)"', text)[0]
    headers = {"origin": str(client.base_url)}
    answer = client.post(action, data={"form_token": token, "tags": "good"}, headers=headers, follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, address)
    assert read_labels(tmp_path / "runs" / "a #1 of 50%").tags == ("good",)


def _links_to_runs(text: str) -> list[str]:
    main = text.partition("<main")[2]
    return [html.unescape(link) for link in re.findall(r'href="(/runs[^"]*)"', main)]

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import asdict
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial
from starlette.testclient import TestClient
from tests.laboratory.example_runs import written

from rl4sys.laboratory.studies.study_summary import CAUSE, JOURNAL, STUDY, TRIALS, stored_study, summary_of

from .conftest import Open

HOSTILE = '"><img src=x onerror=alert(1)><script>alert(1)</script>'


def write_sweep(place: Path) -> None:
    """A sweep over two learning rates: one trial is finished, one trains, one waits."""
    trials = []
    for number, (lr, status) in enumerate([(0.001, "finished"), (0.01, "interrupted"), (0.1, "waiting")]):
        run = place / f"lr={lr}" / f"ppo-{number}"
        if status != "waiting":
            written(run, [100.0 + number], seed=number, finished=status == "finished", lr=lr)
        started = status != "waiting"
        returns = (
            {"steps": 100, "last": 100.0, "best": 100.0}
            if status == "finished"
            else {"steps": 0, "last": None, "best": None}
        )
        trial = {"key": f"lr={lr}", "changes": {"algorithm.lr": lr}, "seed": number, "status": status, "cause": None}
        trials.append(trial | returns | {"run": str(run) if started else None})
    configuration = {"label": "lr=0.001", "changes": {"algorithm.lr": 0.001}, "score": 100.0, "deviation": None}
    summary = {
        "name": place.name,
        "score": "last",
        "configurations": [configuration | {"finished": 1, "trials": 1}],
        "trials": trials,
    }
    (place / "summary.json").write_text(json.dumps(summary))
    (place / "sweep.yaml").write_text("base_config: ppo.yaml\n")


def write_study(place: Path, choice: str = "tanh") -> optuna.Study:
    """A study with six finished trials, a pruned one and a failed one, of ten."""
    place.mkdir(parents=True)
    storage = JournalStorage(JournalFileBackend(str(place / JOURNAL)))
    study = optuna.create_study(study_name=STUDY, storage=storage, direction="maximize")
    study.set_user_attr(TRIALS, 10)
    choices = CategoricalDistribution([json.dumps(choice), json.dumps("relu")])
    space = {"algorithm.lr": FloatDistribution(1e-4, 1e-1, log=True), "network.activation": choices}
    for number in range(6):
        params = {"algorithm.lr": 1e-4 * 2**number, "network.activation": json.dumps((choice, "relu")[number % 2])}
        study.add_trial(
            create_trial(params=params, distributions=space, value=float(number), intermediate_values={100: 1.0})
        )
    pruned = {"algorithm.lr": 0.05, "network.activation": json.dumps("relu")}
    study.add_trial(
        create_trial(params=pruned, distributions=space, state=TrialState.PRUNED, intermediate_values={50: 0.5})
    )
    study.add_trial(create_trial(state=TrialState.FAIL, user_attrs={CAUSE: f"Diverged {choice}"}))
    return study


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_sweep(Path("runs") / "rates")
    write_study(Path("runs") / "search")
    return Path("runs")


@pytest.fixture
def client(pages: Open, runs: Path) -> TestClient:
    return pages(runs)


def test_sweeps_and_studies_are_listed_with_their_progress(client: TestClient) -> None:
    rows = {row["id"]: row for row in client.get("/sweeps.json").json()}
    assert (rows["rates"]["kind"], rows["rates"]["ended"], rows["rates"]["trials"]) == ("sweep", 1, 3)
    assert (rows["search"]["kind"], rows["search"]["ended"], rows["search"]["trials"]) == ("study", 8, 10)
    assert rows["search"]["best"] == 5.0
    text = client.get("/sweeps").text
    assert 'href="/sweep/runs/rates"' in text
    assert 'href="/sweep/runs/search"' in text


def test_the_json_of_a_sweep_is_its_summary(client: TestClient, runs: Path) -> None:
    assert client.get("/sweep/runs/rates.json").json() == json.loads((runs / "rates" / "summary.json").read_text())


def test_the_json_of_a_study_is_that_of_the_command(client: TestClient, runs: Path) -> None:
    place = runs / "search"
    summary = asdict(summary_of(stored_study(place), "search", place))
    assert client.get("/sweep/runs/search.json").json() == json.loads(json.dumps(summary))


def test_trials_are_there_as_csv(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(client.get("/sweep/runs/search.csv").text)))
    assert [row["status"] for row in rows] == ["finished"] * 6 + ["given up", "failed"]
    assert rows[1]["network.activation"] == "relu"


def test_a_sweep_shows_trials_configurations_and_coordinates(client: TestClient) -> None:
    text = client.get("/sweep/runs/rates").text
    assert 'href="/run/runs/rates/lr%3D0.001/ppo-0"' in text.replace("lr=0.001", "lr%3D0.001")
    assert '<svg class="coordinates"' in text
    assert "Configurations" in text
    assert "interrupted" in text


def test_a_study_shows_trials_importances_and_the_best_config(client: TestClient) -> None:
    text = client.get("/sweep/runs/search").text
    assert "rl4sys train runs/search/best.yaml" in text
    assert "Importance of settings" in text
    assert "Diverged tanh" in text
    assert text.count("<polyline") == 7


@pytest.mark.parametrize("sort", ["score", "trial", "status", "steps"])
def test_trials_can_be_sorted(client: TestClient, sort: str) -> None:
    text = client.get(f"/sweep/runs/search?sort={sort}&fragment=body").text
    assert f'?sort={sort}" aria-current="true"' in text


def test_a_journal_that_grows_is_read_again(client: TestClient, runs: Path) -> None:
    assert "8 <span" in client.get("/sweep/runs/search").text
    study = stored_study(runs / "search")
    study.add_trial(study.get_trials()[0])
    assert "9 <span" in client.get("/sweep/runs/search").text


@pytest.mark.parametrize("damaged", [("rates", "summary.json"), ("search", "journal.log")])
def test_a_damaged_file_is_one_sentence_and_the_others_are_shown(
    client: TestClient, runs: Path, damaged: tuple[str, str]
) -> None:
    (runs / damaged[0] / damaged[1]).write_text("{ damaged\n")
    assert "cannot be read" in client.get("/sweeps").text
    answer = client.get(f"/sweep/runs/{damaged[0]}")
    assert (answer.status_code, "cannot be read" in answer.text) == (503, True)


def test_what_was_removed_is_unknown(client: TestClient, runs: Path) -> None:
    shutil.rmtree(runs / "rates")
    assert client.get("/sweep/runs/rates").status_code == 404
    for id_ in ("%2e%2e/runs/search", "/etc", "%2e%2e/x", ""):
        assert client.get(f"/sweep/runs/{id_}").status_code == 404


def test_a_directory_without_any_says_how_to_start_one(pages: Open, tmp_path: Path) -> None:
    written(tmp_path / "runs" / "ppo-0")
    assert "There are no sweeps or studies" in pages(tmp_path / "runs").get("/sweeps").text


def test_values_are_escaped(pages: Open, tmp_path: Path) -> None:
    write_study(tmp_path / "runs" / "search", HOSTILE)
    client = pages(tmp_path / "runs")
    text = client.get("/sweep/runs/search").text + client.get("/sweeps").text
    assert "<img" not in text
    assert "<script>alert" not in text


@pytest.mark.parametrize(("score", "shown"), [(0.0, "0.0"), (-3.5, "-3.5")])
def test_the_best_score_is_shown_also_if_it_is_zero(client: TestClient, runs: Path, score: float, shown: str) -> None:
    path = runs / "rates" / "summary.json"
    path.write_text(path.read_text().replace('"last": 100.0', f'"last": {score}'))
    row = client.get("/sweeps").text.partition(">rates</a>")[2].partition("</tr>")[0]
    assert f'<td class="n">{shown}</td>' in row

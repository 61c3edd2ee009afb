"""Whatever servers, clients, learners and runs contain, the pages show it as text."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest
from tests.laboratory.example_runs import written
from tests.ui.conftest import Open
from tests.ui.fake_servers import FakeSource, fake_fleet
from tests.ui.serving import served_pages
from tests.ui.test_studies_page import write_study, write_sweep

from rl4sys.experiments import MetricRecord
from rl4sys.ui.run_page import VIEWS
from rl4sys.ui.settings import UiSettings
from rl4sys.ui.studies_page import PATH as STUDY_PATH
from rl4sys.wire.generated import status_pb2

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

HOSTILE = (
    '"\'><img src=x onerror="window.executed=1"><script>window.executed=1</script><svg onload=window.executed=1>'
    '</template></textarea><a href="javascript:window.executed=1">{{7*7}}{% raw %}\\u003cscript\\u003e'
)
NAME = "<img src=x onerror=window.executed=1>'{{7*7}}&amp;"
"""The same for names of files."""
INJECTED = "img[src='x'], script:not([src]), svg[onload], a[href^='javascript:'], [onerror], [onclick]"


def hostile_status() -> status_pb2.StatusReply:
    """A status whose every text is hostile."""
    report = {
        "version": 3,
        "mode": HOSTILE,
        "off": HOSTILE,
        "last_error": HOSTILE,
        "lineage": HOSTILE,
        "drops": {HOSTILE: 4},
        "decisions": 200,
        "bad_inputs": 100,
    }
    learner: dict[str, Any] = {
        "learner": HOSTILE,
        "algorithm": HOSTILE,
        "state": "LEARNER_STATE_FAILED",
        "problem": HOSTILE,
        "unused_steps": {HOSTILE: 1},
        "metrics": {HOSTILE: 1.0},
        "device": HOSTILE,
        "lineage": HOSTILE,
        "control": "off",
        "control_reason": HOSTILE,
        "control_sequence": 3,
        "notice": HOSTILE,
        "version": 3,
        "other_lineages": [{"lineage": HOSTILE, "version": 1, "clients": 1}],
    }
    client = {
        "client": HOSTILE,
        "learner": HOSTILE,
        "software": HOSTILE,
        "peer": HOSTILE,
        "warning": HOSTILE,
        "connected": True,
        "report": report,
        "refused_segments": {HOSTILE: 1},
    }
    server = {
        "software": HOSTILE,
        "state": "SERVER_STATE_STORAGE_FAILED",
        "problem": HOSTILE,
        "warnings": [HOSTILE],
        "alerts": [{"name": HOSTILE, "learner": HOSTILE, "text": HOSTILE}],
        "durability": HOSTILE,
    }
    return status_pb2.StatusReply(server=server, learners=[learner], clients=[client])


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs whose every text is hostile."""
    for seed in (0, 1):
        run = written(
            tmp_path / "runs" / f"{NAME}-{seed}",
            [1.0, 2.0],
            algorithm=HOSTILE,
            environment=HOSTILE,
            seed=seed,
            **{NAME: HOSTILE},
        )
        _write_hostile_files(run)
    sweep = tmp_path / "runs" / f"{NAME}-sweep"
    write_sweep(sweep)
    trial = {"key": HOSTILE, "changes": {HOSTILE: HOSTILE}, "seed": 0, "status": "failed", "cause": HOSTILE}
    summary = json.loads((sweep / "summary.json").read_text())
    summary["trials"].append(trial | {"steps": 0, "last": None, "best": None, "run": None})
    summary["configurations"][0]["label"] = HOSTILE
    (sweep / "summary.json").write_text(json.dumps(summary))
    write_study(tmp_path / "runs" / f"{NAME}-study", HOSTILE)
    return tmp_path / "runs"


def _write_hostile_files(run: Path) -> None:
    labels = {"tags": [HOSTILE], "notes": [{"time": HOSTILE, "text": HOSTILE}]}
    (run / "labels.json").write_text(json.dumps(labels))
    manifest = json.loads((run / "manifest.json").read_text())
    manifest |= {"command": ["rl4sys", HOSTILE], "host": HOSTILE, "python": HOSTILE, "packages": {HOSTILE: HOSTILE}}
    manifest |= {"git": {"revision": HOSTILE, "dirty": True}, "machine": {HOSTILE: HOSTILE}, "given": [HOSTILE]}
    (run / "manifest.json").write_text(json.dumps(manifest))
    (run / "process.json").write_text(json.dumps({"host": HOSTILE, "pid": 1, "started": 1.0, "command": HOSTILE}))
    for name in ("output.txt", "error.txt"):
        (run / name).write_text(f"{HOSTILE}\n")
    event = {"time": HOSTILE, "step": 1, "event": HOSTILE, HOSTILE: HOSTILE}
    (run / "events.jsonl").write_text(json.dumps(event) + "\n")
    metrics = MetricRecord(300, {HOSTILE: 1.0, f"evaluation/{HOSTILE}": 2.0, "evaluation/return": 3.0}, {})
    with (run / "metrics.jsonl").open("a") as file:
        file.write(metrics.to_json() + "\n")
    (run / "videos").mkdir()
    (run / "videos" / f"{NAME}.mp4").write_bytes(b"no video")


def test_nothing_that_a_server_sends_is_executed_or_becomes_an_element(browser: Browser) -> None:
    fleet = fake_fleet(FakeSource(hostile_status()))
    with (
        served_pages(UiSettings(servers=("server-1:1",)), fleet) as pages,
        pages.opened(browser, "/fleet") as page,
    ):
        page.wait_for_selector(".curve canvas")
        page.wait_for_function("() => document.querySelectorAll('.findings li').length > 5")
        assert page.locator("tbody a").first.text_content() == HOSTILE
        _require_harmless(page)
        page.locator("tbody a").first.click()
        page.wait_for_selector(".curve canvas")
        assert page.locator("h1").text_content() == HOSTILE
        _require_harmless(page)


def test_nothing_in_a_run_is_executed_or_becomes_an_element(browser: Browser, runs: Path) -> None:
    names = [f"{NAME}-{seed}" for seed in (0, 1)]
    run = f"/run/runs/{quote(names[0])}"
    shown = [
        "/runs",
        *(f"{run}?{urlencode({'view': view})}" for view in VIEWS),
        f"{run}?{urlencode({'metric': HOSTILE})}",
        f"/compare?{urlencode([('run', f'runs/{name}') for name in names])}",
        "/sweeps",
        *(f"{STUDY_PATH}/runs/{quote(f'{NAME}-{kind}')}" for kind in ("sweep", "study")),
    ]
    refused = [
        f"/runs?{urlencode({'filter': f'{HOSTILE}={HOSTILE}', 'sort': HOSTILE})}",
        f"{run}?{urlencode({'view': HOSTILE})}",
        f"/compare?{urlencode({'run': HOSTILE, 'metric': HOSTILE, 'by': HOSTILE})}",
        f"{STUDY_PATH}/runs/{quote(HOSTILE)}",
        f"/nowhere/{quote(HOSTILE)}",
    ]
    with served_pages(UiSettings(runs=(runs,))) as pages, pages.opened(browser, "/runs", may_go_wrong=True) as page:
        page.wait_for_selector("tbody tr")
        assert page.locator("tbody tr").count() == 4
        for address in (*shown, *refused):
            answer = page.goto(f"{pages.url}{address}", wait_until="load")
            assert answer is not None
            assert answer.ok is (address in shown), f"{answer.status} for {address}"
            _require_harmless(page)


def test_spreadsheets_take_nothing_in_a_run_for_a_formula(pages: Open, tmp_path: Path) -> None:
    formula = "=HYPERLINK(1)"
    run = written(tmp_path / "runs" / "=run", [1.0], algorithm=formula, environment="+env", lr=formula)
    (run / "labels.json").write_text(json.dumps({"tags": ["@tag"], "notes": [{"time": "now", "text": "-note"}]}))
    (run / "events.jsonl").write_text(json.dumps({"time": "=now", "step": 1, "event": formula, "rule": formula}) + "\n")
    with (run / "metrics.jsonl").open("a") as file:
        file.write(MetricRecord(300, {formula: 1.0, f"evaluation/{formula}": 2.0}, {}).to_json() + "\n")
    write_study(tmp_path / "runs" / "=study", formula)
    client = pages(tmp_path / "runs")
    tables = ("settings", "evaluations", "seeds", "metrics", "events")
    addresses = [
        *("/runs.csv", "/sweeps.csv", "/run/runs/%3Drun.csv", "/sweep/runs/%3Dstudy.csv"),
        *(f"/run/runs/%3Drun.csv?table={table}" for table in tables),
        f"/run-curves/runs/%3Drun.csv?{urlencode({'metric': formula})}",
        "/compare.csv?run=runs/%3Drun",
    ]
    for address in addresses:
        answer = client.get(address)
        assert answer.status_code == 200, address
        cells = [cell for line in csv.reader(io.StringIO(answer.text)) for cell in line]
        assert [cell for cell in cells if cell.startswith(("=", "+", "@"))] == [], address


def test_files_outside_of_a_run_are_not_sent(pages: Open, runs: Path) -> None:
    run = runs / f"{NAME}-0"
    (runs.parent / "secret").write_text("the secret")
    for name in ("output.txt", "error.txt"):
        (run / name).unlink()
    (run / "output.txt").symlink_to(runs.parent / "secret")
    (run / "videos" / "link.mp4").symlink_to(runs.parent / "secret")
    client, prefix = pages(runs), f"/run-file/runs/{quote(run.name)}?name="
    for name in ("../../secret", "/etc/passwd", "..%2f..%2fsecret", "labels.json", "output.txt", "videos/link.mp4"):
        answer = client.get(f"{prefix}{name}")
        assert answer.status_code == 404, name
        assert "the secret" not in answer.text
    for address in (
        *(f"/run/runs/{quote(run.name)}?view={view}" for view in VIEWS),
        *("/static/%2e%2e/app.py", "/static/..%2fapp.py", "/run/runs/..%2f..", "/run/%2e%2e/secret"),
        *("/run-file/runs/..%2f..?name=secret", "/run-file/..%2f../runs?name=secret"),
    ):
        answer = client.get(address)
        assert "the secret" not in answer.text, address
        assert "def build_app" not in answer.text


def _require_harmless(page: Page) -> None:
    assert page.evaluate("() => window.executed") is None
    assert page.locator(INJECTED).count() == 0, page.url

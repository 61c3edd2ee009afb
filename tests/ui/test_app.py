from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from tests.laboratory.example_runs import written

from rl4sys.ui.app import build_app
from rl4sys.ui.settings import UiSettings

from .conftest import Open


def test_an_unexpected_error_is_a_page_and_the_others_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*given: object) -> str:
        raise ZeroDivisionError("<b>impossible</b>")

    written(tmp_path / "ppo-0")
    monkeypatch.setattr("rl4sys.ui.runs_page.urlencode", fail)
    with TestClient(build_app(UiSettings(runs=(tmp_path,))), raise_server_exceptions=False) as client:
        answer = client.get("/runs")
        assert answer.status_code == 500
        assert "This page could not be made: ZeroDivisionError: &lt;b&gt;impossible" in answer.text
        assert client.get("/compare").status_code == 200


def test_an_unknown_address_is_one_sentence(pages: Open, tmp_path: Path) -> None:
    answer = pages(tmp_path).get("/nowhere/<b>")
    assert (answer.status_code, "There is no page at /nowhere/" in answer.text, "<b>" in answer.text) == (
        404,
        True,
        False,
    )


def test_the_first_page_is_that_of_the_runs(pages: Open, tmp_path: Path) -> None:
    assert pages(tmp_path).get("/", follow_redirects=False).headers["location"] == "/runs"


def test_static_files_do_not_name_other_hosts() -> None:
    import rl4sys.ui

    package = Path(rl4sys.ui.__file__).parent
    own = [*(package / "static").glob("*.*"), *(package / "templates").glob("*.html")]
    named = [link for path in own for link in re.findall(r"(?:https?:|['\"(=])//\w[\w.-]*", path.read_text())]
    assert len(own) > 30
    # The names of SVG and XLink are not addresses that a browser opens.
    assert set(named) <= {"http://www.w3.org"}

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rl4sys.cli import docs
from rl4sys.cli.commands import build


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "secret.txt").write_text("not a page")
    built = tmp_path / "site"
    built.mkdir()
    (built / "index.html").write_text("<h1>Documentation</h1>")
    monkeypatch.setattr(docs, "SITE", built)
    return built


def test_the_site_is_served_on_loopback_and_nothing_beside_it(site: Path) -> None:
    with docs.serve_site(site, 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        address = f"http://127.0.0.1:{server.server_port}"
        page = urllib.request.urlopen(f"{address}/").read()
        with pytest.raises(urllib.error.HTTPError) as outside:
            urllib.request.urlopen(f"{address}/../secret.txt")
        outside.value.close()
        server.shutdown()
        thread.join()
    assert b"Documentation" in page
    assert outside.value.code == 404
    assert server.server_address[0] == "127.0.0.1"


def test_the_address_is_printed_and_no_browser_opened_without_a_terminal(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(docs.ThreadingHTTPServer, "serve_forever", interrupted)
    monkeypatch.setattr(docs.webbrowser, "open", lambda _: pytest.fail("a browser was opened"))
    outcome = CliRunner().invoke(build(["docs", "doctor"]), ["docs"])
    assert outcome.exit_code == 0
    assert outcome.output.startswith("http://127.0.0.1:")


def test_a_missing_site_names_the_command_that_builds_it(tmp_path: Path) -> None:
    with pytest.raises(docs.SiteUnavailable, match="make docs-site"):
        docs.serve_site(tmp_path, 0)


def test_a_port_that_is_taken_is_named(site: Path) -> None:
    with docs.serve_site(site, 0) as server, pytest.raises(docs.SiteUnavailable, match=f"Port {server.server_port}"):
        docs.serve_site(site, server.server_port)

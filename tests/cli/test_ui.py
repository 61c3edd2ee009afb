"""`rl4sys ui`: what keeps it from starting is one sentence, and the link it prints works once."""

from __future__ import annotations

import importlib.util
import re
import signal
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import httpx2 as httpx
import pytest
from tests.cli.commands import Here
from tests.pem_files import make_certificate, needs_openssl

from rl4sys.ui.page_address import PageAddress


def test_a_taken_port_is_one_sentence(rl4sys: Here) -> None:
    with PageAddress("127.0.0.1:0").bind() as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        outcome = rl4sys("ui", "--listen", listen)
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: Cannot listen on {listen}: Address already in use.")
    assert outcome.err.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--listen", "0.0.0.0:8265"), "lets other machines in: that needs TLS and a token"),
        (("--listen", "here"), "expected HOST:PORT"),
        (("--page-token-file", "nowhere"), "--page-token-file nowhere: No such file"),
        (("--page-cert", "nowhere"), "--page-cert and --page-key belong together"),
        (("--server", "127.0.0.1:1", "--token-file", "nowhere"), "nowhere"),
        (("--server", "train.example.com:1", "--token", "secret"), "unencrypted"),
    ],
)
def test_what_cannot_be_served_safely_is_refused_in_one_sentence(
    rl4sys: Here, options: tuple[str, ...], sentence: str
) -> None:
    outcome = rl4sys("ui", *options)
    assert outcome.code == 2
    assert sentence in outcome.err
    assert outcome.err.count("\n") == 1


def test_a_missing_package_is_named_with_its_extra(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    find: Any = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "uvicorn" else find(name, *rest)
    )
    outcome = rl4sys("ui")
    assert outcome.code == 2
    assert outcome.err == "error: The pages need the package 'uvicorn'. Install it with: pip install 'rl4sys[ui]'\n"


@pytest.mark.slow
def test_the_printed_link_works_once_and_then_another_is_printed(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    command = [sys.executable, "-m", "rl4sys.cli", "ui", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        try:
            link = _printed_link(process)
            with httpx.Client() as browser:
                assert browser.get(link).status_code == 200
                assert browser.get(urljoin(link, "/runs.json")).status_code != 401
            second = _printed_link(process)
            assert second != link
            assert httpx.get(link).status_code == 403
            assert httpx.get(second).status_code == 200
        finally:
            process.terminate()
        assert process.wait(30) in (0, 130, -signal.SIGTERM)


@pytest.mark.slow
@needs_openssl
def test_other_machines_get_in_over_tls_and_with_a_token_only(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    certificate, key = make_certificate(tmp_path, "page")
    (tmp_path / "tokens").write_text("a-token-that-is-long-enough\n")
    files = ("--page-cert", str(certificate), "--page-key", str(key), "--page-token-file", str(tmp_path / "tokens"))
    command = [sys.executable, "-m", "rl4sys.cli", "ui", "--listen", "0.0.0.0:0", "--page-name", "localhost", *files]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        try:
            page = _printed_link(process).partition("/?")[0]
            assert page.startswith("https://localhost:")
            with httpx.Client(
                verify=ssl.create_default_context(cafile=certificate), headers={"origin": page}
            ) as browser:
                assert browser.get(f"{page}/runs.json").status_code == 401
                assert browser.post(f"{page}/sign-in", data={"token": "guessed-wrongly-again"}).status_code == 403
                answer = browser.post(f"{page}/sign-in", data={"token": "a-token-that-is-long-enough"})
                assert answer.status_code == 303
                assert "Secure" in answer.headers["set-cookie"]
                assert browser.get(f"{page}/runs.json").status_code != 401
        finally:
            process.terminate()


def _printed_link(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    line = process.stderr.readline()
    found = re.search(r"https?://\S+", line)
    assert found is not None, line
    return found[0]

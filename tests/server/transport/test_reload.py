"""What a running server reads again, and what it says about files that it cannot use."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pem_files import make_certificate, needs_openssl
from tests.server.clients import eventually
from tests.server.conftest import THREADS

from rl4sys.config import ConfigError
from rl4sys.server import GrpcServer, ServerOptions, ServiceLimits, serve
from rl4sys.server.__main__ import main
from rl4sys.server.access.tokens import TokenFile
from rl4sys.server.config import load_config, server_options
from rl4sys.server.reload import LIVE_LIMITS
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.transport import server_process
from rl4sys.server.transport.server_process import Hurried
from rl4sys.wire.calls import CallFailed

TOKEN = "a" * 20
CREDENTIALS = [("authorization", f"Bearer {TOKEN}")]


@needs_openssl
def test_a_new_certificate_is_used_by_new_connections_and_a_broken_one_is_not(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "used")
    others = make_certificate(tmp_path, "other")
    options = ServerOptions("127.0.0.1:0", tmp_path / "data", tls_cert=cert, tls_key=key, service=THREADS)
    server = GrpcServer(options)
    try:

        def shown() -> str:
            return ssl.get_server_certificate(("127.0.0.1", server.port)).strip()

        assert shown() == cert.read_text().strip()
        shutil.copy(others[0], cert)
        # The certificate does not belong to the key as long as only one of them is replaced.
        assert shown() != others[0].read_text().strip()
        (warning,) = server.service.current_status().server.warnings
        assert "are not a certificate and its private key" in warning
        shutil.copy(others[1], key)
        server.reload(None)
        assert shown() == others[0].read_text().strip()
        assert not server.service.current_status().server.warnings
    finally:
        server.drain()


def test_a_token_file_that_cannot_be_read_changes_nothing_and_a_missing_one_admits_no_caller(tmp_path: Path) -> None:
    path, warnings = tmp_path / "tokens", ServerWarnings()
    path.write_text(f"{TOKEN} a\n")
    tokens = TokenFile(path, warnings=warnings)
    path.unlink()
    path.mkdir()
    assert tokens.authenticate(CREDENTIALS, "").may_use("a")
    assert "cannot be read (Is a directory); tokens are as they were before" in warnings.all()[0]
    path.rmdir()
    with pytest.raises(CallFailed, match="unknown or revoked"):
        tokens.authenticate(CREDENTIALS, "")
    assert "is missing, so no token is valid" in warnings.all()[0]
    path.write_text(f"{TOKEN} b\n")
    assert tokens.authenticate(CREDENTIALS, "").may_use("b")
    assert warnings.all() == []


def test_every_limit_that_is_applied_at_once_exists() -> None:
    assert set(ServiceLimits.model_fields) >= LIVE_LIMITS


def reload_with(tmp_path: Path, before: str, after: str, check: Callable[[GrpcServer], bool]) -> None:
    """Serve with a config, change it, send SIGHUP, and stop when the check is true."""
    path = tmp_path / "server.yaml"
    path.write_text(f"{COMMON}{before}")

    def read() -> ServerOptions:
        return server_options(load_config(path, {}))

    def change(server: GrpcServer) -> None:
        try:
            path.write_text(f"{COMMON}{after}")
            os.kill(os.getpid(), signal.SIGHUP)
            eventually(lambda: check(server))
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    threads: list[threading.Thread] = []

    def ready(server: GrpcServer) -> None:
        threads.append(threading.Thread(target=change, args=(server,)))
        threads[0].start()

    serve(read(), ready, read)
    threads[0].join()


COMMON = "listen: 127.0.0.1:0\ndata: data\nworkers: threads\n"


def test_sighup_applies_limits_and_experiments_and_names_what_needs_a_restart(tmp_path: Path) -> None:
    seen: list[str] = []

    def check(server: GrpcServer) -> bool:
        seen[:] = server.service.warnings.all()
        options = server.service.options
        return options.limits.max_learners == 7 and options.offers.find("fleet").algorithm == "ppo" and bool(seen)

    after = "limits: {max_learners: 7, max_push_segments: 9}\nlog_format: text\ndurability: os\n"
    reload_with(tmp_path, "", after + "experiments: {fleet: {algorithm: ppo}}\n", check)
    assert seen == ["The config has changes that need a restart of the server: durability, limits.max_push_segments."]


def test_a_broken_config_is_not_applied_and_is_named_in_the_status(tmp_path: Path) -> None:
    seen: list[str] = []

    def check(server: GrpcServer) -> bool:
        seen[:] = server.service.current_status().server.warnings
        return bool(seen) and server.service.options.limits.max_learners == 5

    reload_with(tmp_path, "limits: {max_learners: 5}\n", "limits: {max_lerners: 7}\n", check)
    assert "The config was not reloaded" in seen[0]
    assert "did you mean 'max_learners'" in seen[0]


def test_experiments_that_cannot_be_built_are_not_offered_after_a_reload(tmp_path: Path) -> None:
    server = GrpcServer(ServerOptions("127.0.0.1:0", tmp_path, service=THREADS))
    try:
        wrong = server_options(load_config(None, {"workers": "threads", "experiments": {"x": {"algorithm": "pop"}}}))
        with pytest.raises(ConfigError, match=r"experiments.x: .*did you mean 'ppo'"):
            server.service.reload(wrong.service)
        assert not server.service.options.offers
    finally:
        server.drain()


def test_a_second_signal_ends_the_server_without_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    servers: list[GrpcServer] = []
    drained, let_go = threading.Event(), threading.Event()
    drain = GrpcServer.drain

    def slow_drain(server: GrpcServer) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        let_go.wait()
        drain(server)
        drained.set()

    def ready(server: GrpcServer) -> None:
        servers.append(server)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(GrpcServer, "drain", slow_drain)
    try:
        with pytest.raises(Hurried, match="learners are not saved"):
            serve(ServerOptions("127.0.0.1:0", tmp_path, service=THREADS), ready)
    finally:
        let_go.set()
        drained.wait(30.0)


def test_a_hurried_server_exits_with_the_code_of_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def exit_now(code: int) -> None:
        raise SystemExit(code)

    def hurried(*_: object) -> None:
        raise Hurried("Asked again to stop.")

    monkeypatch.setattr(os, "_exit", exit_now)
    monkeypatch.setattr("rl4sys.server.__main__.serve", hurried)
    with pytest.raises(SystemExit) as ended:
        main(["--data", str(tmp_path)])
    assert ended.value.code == 143
    assert "Asked again to stop." in capsys.readouterr().err


def test_an_error_of_draining_is_raised_in_the_main_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drain = GrpcServer.drain

    def broken(server: GrpcServer) -> None:
        drain(server)
        raise RuntimeError("it broke")

    monkeypatch.setattr(GrpcServer, "drain", broken)
    with pytest.raises(RuntimeError, match="it broke"):
        serve(ServerOptions("127.0.0.1:0", tmp_path, service=THREADS), lambda _: os.kill(os.getpid(), signal.SIGTERM))
    assert server_process.ServerSignals().is_stopping is False

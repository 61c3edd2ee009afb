"""Metrics, read by a strict parser of the text format."""

from __future__ import annotations

import logging
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.server.clients import ScriptedClient, eventually, join_request

from rl4sys.server import ImpossibleSetup, InProcessTransport, ServerOptions, TrainingService
from rl4sys.server.transport import metrics
from rl4sys.server.transport.metrics import MetricsServer, StatusCollector
from rl4sys.server.transport.server_process import _metrics
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

Serve = Callable[..., InProcessTransport]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9][0-9.e+-]*|NaN|[+-]Inf)")


NAMES = [
    *("rl4sys_calls_total", "rl4sys_client_connected", "rl4sys_client_delayed_pushes_total"),
    *("rl4sys_client_received_bytes_total", "rl4sys_client_refused_segments_total"),
    *("rl4sys_client_repeated_segments_total", "rl4sys_client_silent_seconds", "rl4sys_client_stored_bytes_total"),
    *("rl4sys_client_stored_segments_total", "rl4sys_client_stored_steps_total", "rl4sys_client_version"),
    *("rl4sys_failed_calls_total", "rl4sys_learner_checkpoint_age_seconds", "rl4sys_learner_clients"),
    *("rl4sys_learner_cpu_seconds_total", "rl4sys_learner_episodes_total", "rl4sys_learner_info"),
    *("rl4sys_learner_learned_steps_total", "rl4sys_learner_log_bytes", "rl4sys_learner_mean_return"),
    *("rl4sys_learner_memory_bytes", "rl4sys_learner_queued_bytes", "rl4sys_learner_queued_segments"),
    *("rl4sys_learner_restarts_total", "rl4sys_learner_state", "rl4sys_learner_stored_bytes_total"),
    *("rl4sys_learner_stored_segments_total", "rl4sys_learner_stored_steps_total", "rl4sys_learner_unused_steps_total"),
    *("rl4sys_learner_updates_total", "rl4sys_learner_version", "rl4sys_server_connected_clients"),
    *("rl4sys_server_cpu_seconds_total", "rl4sys_server_data_bytes", "rl4sys_server_disk_free_bytes"),
    *("rl4sys_server_info", "rl4sys_server_memory_bytes", "rl4sys_server_state", "rl4sys_server_uptime_seconds"),
]


def exposition(reply: status_pb2.StatusReply) -> str:
    """The text that a scraper receives for this status."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: reply))
    return generate_latest(registry).decode()


def parsed(text: str) -> Samples:
    """Every sample, or an assertion about the line that breaks the format."""
    samples: Samples = {}
    kinds: dict[str, str] = {}
    helped: set[str] = set()
    family = ""
    assert text.endswith("\n")
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            family = line.split(" ", 3)[2]
            assert family not in helped, f"two families {family}"
            helped.add(family)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == family, f"TYPE without its HELP: {line}"
            assert kind in ("counter", "gauge")
            assert (kind == "counter") == name.endswith("_total"), line
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"no sample: {line!r}"
            name, labels, value = match.groups()
            assert name == family, f"{name} is not within its family"
            assert name in kinds
            pairs = [part.split("=", 1) for part in re.findall(LABEL, labels or "")]
            key = (name, frozenset((label, _unescaped(quoted[1:-1])) for label, quoted in pairs))
            assert key not in samples, f"twice: {line}"
            samples[key] = float(value)
    return samples


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


@pytest.fixture
def fetch(serve: Serve) -> Iterator[tuple[TrainingService, Callable[[str], str]]]:
    service = serve()._service
    with closing(MetricsServer("127.0.0.1", 0, service.current_status)) as server:

        def get(path: str) -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{path}", timeout=10) as answer:
                assert answer.headers["Content-Type"].startswith("text/plain")
                return str(answer.read().decode())

        yield service, get


def test_a_scrape_reports_the_numbers_of_the_status(fetch: tuple[TrainingService, Callable[[str], str]]) -> None:
    service, get = fetch
    client = ScriptedClient(InProcessTransport(service), join_request("a"))
    client.push(range(4))
    client.push(range(2))
    client.push_bytes({9: b"junk"})
    eventually(lambda: service.current_status().learners[0].updates == 1)
    with pytest.raises(CallFailed):
        client.push([])
    samples = parsed(get("/metrics"))
    of_client = {"client": "a", "learner": "a"}
    assert value(samples, "rl4sys_client_stored_segments_total", **of_client) == 4
    assert value(samples, "rl4sys_client_stored_steps_total", **of_client) == 32
    assert value(samples, "rl4sys_client_repeated_segments_total", **of_client) == 2
    assert value(samples, "rl4sys_client_refused_segments_total", **of_client, reason="MALFORMED") == 1
    assert value(samples, "rl4sys_client_connected", **of_client) == 1
    assert value(samples, "rl4sys_learner_version", learner="a") == 1
    assert value(samples, "rl4sys_learner_state", learner="a", state="waiting") == 1
    assert value(samples, "rl4sys_learner_state", learner="a", state="failed") == 0
    assert value(samples, "rl4sys_learner_stored_bytes_total", learner="a") > 0
    assert value(samples, "rl4sys_server_cpu_seconds_total") > 0
    assert value(samples, "rl4sys_server_state", state="serving") == 1
    assert value(samples, "rl4sys_calls_total", method="Push", code="OK") == 3
    assert value(samples, "rl4sys_calls_total", method="Push", code="INVALID_ARGUMENT") == 1
    assert value(samples, "rl4sys_failed_calls_total", code="INVALID_ARGUMENT") == 1


def test_unknown_numbers_are_left_out(fetch: tuple[TrainingService, Callable[[str], str]]) -> None:
    service, get = fetch
    ScriptedClient(InProcessTransport(service), join_request("a"))
    names = {name for name, _ in parsed(get("/metrics"))}
    assert "rl4sys_learner_version" in names
    assert not names & {"rl4sys_learner_mean_return", "rl4sys_learner_checkpoint_age_seconds", "rl4sys_client_version"}


def test_labels_keep_every_character() -> None:
    odd = 'a"b\\c\nd{e="f"},é'
    reply = status_pb2.StatusReply(learners=[status_pb2.LearnerStatus(learner=odd, unused_steps={odd: 3})])
    assert value(parsed(exposition(reply)), "rl4sys_learner_unused_steps_total", learner=odd, reason=odd) == 3


@pytest.mark.parametrize("number", [0.1, -2.5e-9, float("1e300"), float("-inf")])
def test_numbers_keep_their_value(number: float) -> None:
    reply = status_pb2.StatusReply(learners=[status_pb2.LearnerStatus(learner="a", mean_return=number)])
    assert value(parsed(exposition(reply)), "rl4sys_learner_mean_return", learner="a") == number


def test_the_names_that_operators_scrape_stay_the_same() -> None:
    status = status_pb2.StatusReply(
        server=status_pb2.ServerStatus(calls=[status_pb2.CallCount(method="Push", code="OK", count=1)]),
        learners=[status_pb2.LearnerStatus(mean_return=1.0, checkpoint_age_seconds=1.0, unused_steps={"too_old": 1})],
        clients=[status_pb2.ClientStatus(version=1, refused_segments={"MALFORMED": 1})],
    )
    status.server.failed_calls["INTERNAL"] = 1
    assert sorted({name for name, _ in parsed(exposition(status))}) == NAMES


def test_healthz_answers_with_a_code_and_the_state(fetch: tuple[TrainingService, Callable[[str], str]]) -> None:
    service, get = fetch
    assert get("/healthz") == "serving\n"
    service.drain()
    with pytest.raises(urllib.error.HTTPError) as failed:
        get("/healthz")
    with failed.value as answer:
        assert (answer.code, answer.read()) == (503, b"draining\n")


def test_other_paths_are_refused(fetch: tuple[TrainingService, Callable[[str], str]]) -> None:
    _, get = fetch
    with pytest.raises(urllib.error.HTTPError) as failed:
        get("/")
    with failed.value as answer:
        assert answer.code == 404


def test_idle_connections_do_not_pile_up(serve: Serve) -> None:
    service = serve()._service
    with closing(MetricsServer("127.0.0.1", 0, service.current_status)) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
        with closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)) as ninth:
            assert ninth.recv(1) == b""
        for connection in idle:
            connection.close()


def test_a_request_that_takes_too_long_is_cut_off(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_REQUEST_SECONDS", 0.2)
    service = serve()._service
    with (
        closing(MetricsServer("127.0.0.1", 0, service.current_status)) as server,
        closing(socket.create_connection(("127.0.0.1", server.port), timeout=4)) as slow,
    ):
        slow.sendall(b"GET /met")
        assert slow.recv(1) == b""


def test_a_metrics_port_in_use_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ImpossibleSetup, match=f"port {port}.*--metrics-port"):
            MetricsServer("127.0.0.1", port, status_pb2.StatusReply)


def test_a_server_on_a_unix_socket_serves_metrics_to_this_machine_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = ServerOptions(f"unix:{tmp_path}/socket", tmp_path, metrics_port=0)
    with caplog.at_level(logging.INFO), TrainingService(tmp_path) as service, _metrics(options, service):
        found = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", caplog.text)
        assert found
        with urllib.request.urlopen(found[0], timeout=10) as answer:
            parsed(answer.read().decode())
    assert "other machines" not in caplog.text

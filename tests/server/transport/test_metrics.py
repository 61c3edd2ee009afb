"""Metrics, read by a strict parser of the text format."""

from __future__ import annotations

import logging
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.pem_files import make_certificate, needs_openssl
from tests.server.clients import ScriptedClient, eventually, join_request

from rl4sys.server import ANYONE, Caller, ImpossibleSetup, InProcessTransport, ServerOptions, TrainingService
from rl4sys.server.access.tokens import TokenFile
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.service.readiness import Readiness
from rl4sys.server.transport import metrics_server
from rl4sys.server.transport.access_files import AccessFiles
from rl4sys.server.transport.certificates import Certificates
from rl4sys.server.transport.metric_names import NameBudget
from rl4sys.server.transport.metrics import OTHER, StatusCollector
from rl4sys.server.transport.metrics_server import MetricsServer
from rl4sys.server.transport.server_process import serve_metrics
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

from .every_metric import EVERYTHING, exposition

Serve = Callable[..., InProcessTransport]
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\\\|\\"|\\n)*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (-?[0-9][0-9.e+-]*|NaN|[+-]Inf)")


NAMES = [
    *("rl4sys_alert_firing", "rl4sys_calls_total", "rl4sys_client_acting_version", "rl4sys_client_backlog_bytes"),
    *("rl4sys_client_backlog_segments", "rl4sys_client_bad_inputs_total", "rl4sys_client_connected"),
    *("rl4sys_client_decisions_total", "rl4sys_client_delayed_pushes_total", "rl4sys_client_dropped_total"),
    *("rl4sys_client_fallback_decisions_total", "rl4sys_client_late_rewards_total", "rl4sys_client_open_episodes"),
    *("rl4sys_client_policy_decides", "rl4sys_client_received_bytes_total", "rl4sys_client_refused_segments_total"),
    *("rl4sys_client_repeated_segments_total", "rl4sys_client_report_age_seconds"),
    *("rl4sys_client_server_decisions_total", "rl4sys_client_silent_seconds"),
    *("rl4sys_client_stored_bytes_total", "rl4sys_client_stored_segments_total", "rl4sys_client_stored_steps_total"),
    *(
        "rl4sys_client_thinned_episodes_total",
        "rl4sys_client_unanswered_decisions_total",
        "rl4sys_client_version",
        "rl4sys_client_warning",
    ),
    *("rl4sys_failed_calls_total", "rl4sys_learner_checkpoint_age_seconds", "rl4sys_learner_clients"),
    *("rl4sys_learner_control", "rl4sys_learner_cpu_seconds_total", "rl4sys_learner_decision_seconds_bucket"),
    *("rl4sys_learner_episodes_total", "rl4sys_learner_frozen", "rl4sys_learner_info"),
    *("rl4sys_learner_learned_steps_total", "rl4sys_learner_log_bytes", "rl4sys_learner_mean_return"),
    *("rl4sys_learner_memory_bytes", "rl4sys_learner_obeying_clients", "rl4sys_learner_other_lineage_clients"),
    *("rl4sys_learner_queued_bytes", "rl4sys_learner_queued_segments", "rl4sys_learner_record_share"),
    *("rl4sys_learner_refolded_version", "rl4sys_learner_restarts_total", "rl4sys_learner_state"),
    *("rl4sys_learner_stored_bytes_total", "rl4sys_learner_stored_segments_total"),
    *("rl4sys_learner_stored_steps_total", "rl4sys_learner_unused_steps_total", "rl4sys_learner_updates_total"),
    *("rl4sys_learner_version", "rl4sys_learner_weights", "rl4sys_server_connected_clients"),
    *("rl4sys_server_cpu_seconds_total", "rl4sys_server_data_bytes", "rl4sys_server_disk_free_bytes"),
    *("rl4sys_server_info", "rl4sys_server_memory_bytes", "rl4sys_server_state", "rl4sys_server_uptime_seconds"),
    *("rl4sys_server_warnings",),
]


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
            assert kind in ("counter", "gauge", "histogram")
            assert (kind == "counter") == name.endswith("_total"), line
            kinds[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, f"no sample: {line!r}"
            name, labels, value = match.groups()
            of_family = name.removesuffix("_bucket") if kinds.get(family) == "histogram" else name
            assert of_family == family, f"{name} is not within its family"
            assert of_family in kinds
            pairs = [part.split("=", 1) for part in re.findall(LABEL, labels or "")]
            key = (name, frozenset((label, _unescaped(quoted[1:-1])) for label, quoted in pairs))
            assert key not in samples, f"twice: {line}"
            samples[key] = float(value)
    return samples


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, frozenset(labels.items())]


def observing(service: TrainingService) -> MetricsServer:
    server = MetricsServer("127.0.0.1", 0, 200)
    server.observe(service)
    return server


@pytest.fixture
def fetch(serve: Serve) -> Iterator[tuple[TrainingService, Callable[[str], str]]]:
    service = serve()._service
    with closing(observing(service)) as server:

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
    eventually(lambda: (learner := service.current_status().learners[0]).updates == learner.version == 1)
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
    assert sorted({name for name, _ in parsed(exposition(EVERYTHING))}) == NAMES


def refused(get: Callable[[str], str], path: str) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as failed:
        get(path)
    with failed.value as answer:
        return answer.code, answer.read().decode()


def test_a_draining_server_is_alive_and_not_ready(fetch: tuple[TrainingService, Callable[[str], str]]) -> None:
    service, get = fetch
    assert get("/healthz") == get("/readyz") == "serving\n"
    service.drain()
    assert get("/healthz") == "draining\n"
    assert refused(get, "/readyz") == (503, "draining\n")


class Scripted:
    """A service in a given state."""

    def __init__(self, ready: Readiness) -> None:
        self.ready = ready

    def readiness(self) -> Readiness:
        return self.ready

    def current_status(self, learner: str = "", caller: Caller = ANYONE) -> status_pb2.StatusReply:
        return status_pb2.StatusReply(server={"software": caller.who})


def ask(
    server: MetricsServer, path: str, token: str | None = None, tls: ssl.SSLContext | None = None
) -> tuple[int, str]:
    scheme = "http" if tls is None else "https"
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{server.port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10, context=tls) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_probes_say_starting_storage_failed_failed_learners_and_hanging_calls() -> None:
    with closing(MetricsServer("127.0.0.1", 0, 1)) as server:
        assert ask(server, "/healthz") == (200, "starting\n")
        assert ask(server, "/readyz") == ask(server, "/metrics") == (503, "starting\n")
        server.observe(Scripted(Readiness("storage_failed", "The disk is full.")))
        assert ask(server, "/healthz") == (200, "storage_failed: The disk is full.\n")
        assert ask(server, "/readyz") == (503, "storage_failed: The disk is full.\n")
        server.observe(Scripted(Readiness("serving", "", ("learner a: FAILED: it broke",))))
        assert ask(server, "/readyz") == (200, "serving\nlearner a: FAILED: it broke\n")
        server.observe(Scripted(Readiness("serving")), lambda: False)
        assert ask(server, "/healthz") == (503, "calls are not answered\n")


@needs_openssl
def test_remote_scrapers_need_tls_and_a_token_and_probes_show_no_names_without(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "server")
    (tmp_path / "tokens").write_text(f"{'v' * 20} role=viewer name=scraper\n{'c' * 20} a\n")
    certificates = Certificates(cert, key, None, ServerWarnings())
    with closing(MetricsServer("127.0.0.1", 0, 1, certificates, TokenFile(tmp_path / "tokens"))) as server:
        server.observe(Scripted(Readiness("serving", "", ("learner a: FAILED: it broke",))))
        tls = ssl.create_default_context(cafile=str(cert))
        assert 'software="scraper"' in ask(server, "/metrics", "v" * 20, tls)[1]
        assert ask(server, "/metrics", None, tls)[0] == ask(server, "/metrics", "x" * 20, tls)[0] == 401
        assert ask(server, "/readyz", None, tls) == ask(server, "/readyz", "c" * 20, tls) == (200, "serving\n")
        assert "it broke" in ask(server, "/readyz", "v" * 20, tls)[1]
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            ask(server, "/metrics", "v" * 20)


def test_metrics_for_other_machines_need_tls_and_tokens_or_insecure(tmp_path: Path) -> None:
    with pytest.raises(ImpossibleSetup, match=r"Metrics on 0.0.0.0:9100 can be read from other machines"):
        ServerOptions(metrics_listen="0.0.0.0:9100")
    with pytest.raises(ImpossibleSetup, match="give --metrics-listen or --metrics-port"):
        ServerOptions(metrics_listen="127.0.0.1:9100", metrics_port=9100)
    with pytest.raises(ImpossibleSetup, match="metrics_listen: got '9100'"):
        ServerOptions(metrics_listen="9100")
    ServerOptions(metrics_listen="127.0.0.1:9100")
    ServerOptions(metrics_listen="0.0.0.0:9100", token_file=tmp_path, tls_cert=tmp_path, tls_key=tmp_path)
    ServerOptions(metrics_listen="0.0.0.0:9100", insecure=True)


def test_clients_beyond_the_limit_are_summed_and_the_named_ones_stay() -> None:
    def reply(*names: str, gone: str = "") -> status_pb2.StatusReply:
        made = status_pb2.StatusReply()
        for name in names:
            made.clients.add(client=name, learner="l", connected=name not in gone, stored_steps=10, version=1)
        return made

    budget = NameBudget(2)

    def named(status: status_pb2.StatusReply) -> Samples:
        registry = CollectorRegistry()
        registry.register(StatusCollector(lambda: status, NameBudget(1), budget))
        return parsed(generate_latest(registry).decode())

    first = named(reply("c", "d"))
    assert value(first, "rl4sys_client_version", client="d", learner="l") == 1
    later = named(reply("a", "b", "c", "d"))
    assert value(later, "rl4sys_client_stored_steps_total", client="c", learner="l") == 10
    assert value(later, "rl4sys_client_stored_steps_total", client=OTHER, learner=OTHER) == 20
    assert ("rl4sys_client_version", frozenset({("client", OTHER), ("learner", OTHER)})) not in later
    last = named(reply("a", "b", "c", "d", gone="c"))
    assert value(last, "rl4sys_client_stored_steps_total", client="a", learner="l") == 10
    assert value(last, "rl4sys_client_stored_steps_total", client="d", learner="l") == 10


def test_learners_beyond_the_limit_are_summed_with_their_states() -> None:
    reply = status_pb2.StatusReply()
    for name, state in (("a", "WAITING"), ("b", "FAILED"), ("c", "FAILED")):
        reply.learners.add(learner=name, state=f"LEARNER_STATE_{state}", unused_steps={"too_old": 5}, mean_return=1.0)
    samples = parsed(exposition(reply, names=1))
    assert value(samples, "rl4sys_learner_state", learner=OTHER, state="failed") == 2
    assert value(samples, "rl4sys_learner_unused_steps_total", learner=OTHER, reason="too_old") == 10
    assert [labels for name, labels in samples if name == "rl4sys_learner_mean_return"] == [{("learner", "a")}]


def test_what_clients_report_is_exported() -> None:
    report = {"version": 7, "decisions": 100, "backlog_bytes": 5, "decision_time": [90, 0, 10], "off": "lease"}
    reply = status_pb2.StatusReply(learners=[{"learner": "l", "control": "off"}])
    for name in "ab":
        reply.clients.add(client=name, learner="l", report=report | {"drops": {"outbox_full": 2}})
    samples, of_a = parsed(exposition(reply)), {"client": "a", "learner": "l"}
    assert value(samples, "rl4sys_client_acting_version", **of_a) == 7
    assert value(samples, "rl4sys_client_policy_decides", **of_a) == 0
    assert value(samples, "rl4sys_client_dropped_total", **of_a, reason="outbox_full") == 2
    assert value(samples, "rl4sys_learner_control", learner="l", mode="off") == 1
    assert value(samples, "rl4sys_learner_decision_seconds_bucket", learner="l", le="1e-06") == 180
    assert value(samples, "rl4sys_learner_decision_seconds_bucket", learner="l", le="+Inf") == 200


def test_made_up_reasons_of_clients_are_bounded() -> None:
    reply = status_pb2.StatusReply()
    for number in range(100):
        reply.clients.add(client="a", learner=str(number), report={"drops": {f"reason {number:03}": 1}})
    reasons = {
        dict(labels)["reason"] for name, labels in parsed(exposition(reply)) if name == "rl4sys_client_dropped_total"
    }
    assert len(reasons) == 33
    assert OTHER in reasons


def test_other_paths_are_refused(fetch: tuple[TrainingService, Callable[[str], str]]) -> None:
    _, get = fetch
    with pytest.raises(urllib.error.HTTPError) as failed:
        get("/")
    with failed.value as answer:
        assert answer.code == 404


def test_idle_connections_do_not_pile_up(serve: Serve) -> None:
    service = serve()._service
    with closing(observing(service)) as server:
        idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(8)]
        with closing(socket.create_connection(("127.0.0.1", server.port), timeout=10)) as ninth:
            assert ninth.recv(1) == b""
        for connection in idle:
            connection.close()


def test_a_request_that_takes_too_long_is_cut_off(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_server, "_REQUEST_SECONDS", 0.2)
    service = serve()._service
    with (
        closing(observing(service)) as server,
        closing(socket.create_connection(("127.0.0.1", server.port), timeout=4)) as slow,
    ):
        slow.sendall(b"GET /met")
        assert slow.recv(1) == b""


def test_a_metrics_port_in_use_is_named() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ImpossibleSetup, match=f"port {port}.*--metrics-port"):
            MetricsServer("127.0.0.1", port, 1)


def test_a_server_on_a_unix_socket_serves_metrics_to_this_machine_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = ServerOptions(f"unix:{tmp_path}/socket", tmp_path, metrics_port=0)
    files = AccessFiles(None, None, None, None)
    with caplog.at_level(logging.INFO), TrainingService(tmp_path) as service, serve_metrics(options, files) as server:
        assert server is not None
        server.observe(service)
        found = re.search(r"http://127\.0\.0\.1:(\d+)/metrics", caplog.text)
        assert found
        with urllib.request.urlopen(found[0], timeout=10) as answer:
            parsed(answer.read().decode())
    assert "other machines" not in caplog.text

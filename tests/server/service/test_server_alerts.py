"""Alerts of a server: when they fire, where they show, and how they are changed while it runs."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, eventually, join_request
from tests.server.conftest import THREADS

from rl4sys.config import ConfigError, parse
from rl4sys.server import InProcessTransport, ServiceLimits, TrainingService
from rl4sys.server.access.caller import Caller, Role
from rl4sys.server.alert_config import DEFAULT_ALERTS, LEARNER_METRICS, SERVER_METRICS, ServerAlertConfig
from rl4sys.server.config import ServerConfig, load_config, server_options
from rl4sys.server.service.alert_metrics import AlertMetrics, ReportedCounts
from rl4sys.server.service.server_alerts import AlertFiring, ServerAlerts
from rl4sys.wire.generated import status_pb2


class Measures:
    """Metrics that a test sets, and a clock that it moves."""

    def __init__(self) -> None:
        self.time = 0.0
        self.server: dict[str, float] = {}
        self.learners: dict[str, dict[str, float]] = {}
        self.messages: list[str] = []

    def of_server(self) -> dict[str, float]:
        return self.server

    def of_learners(self, limits: ServiceLimits) -> dict[str, dict[str, float]]:
        return self.learners

    def send(self, title: str, text: str, addresses: object) -> bool:
        self.messages.append(f"{title}: {text}")
        return True

    def close(self) -> None:
        """Nothing is on its way."""


def alert(**values: object) -> ServerAlertConfig:
    return parse(ServerAlertConfig, values)


def alerts(measures: Measures, *configs: ServerAlertConfig) -> ServerAlerts:
    return ServerAlerts(measures, configs, ServiceLimits(), lambda: measures.time, measures)  # type: ignore[arg-type]


def names(watched: ServerAlerts) -> list[tuple[str, str]]:
    return [(each.name, each.learner) for each in watched.firing()]


def look_at(watched: ServerAlerts, measures: Measures, time: float, **learners: float) -> list[tuple[str, str]]:
    measures.time = time
    measures.learners = {name: {"learner/mean_return": value} for name, value in learners.items()}
    watched.look()
    return names(watched)


def test_an_alert_fires_for_each_learner_after_it_has_held_for_long_enough() -> None:
    measures = Measures()
    watched = alerts(measures, alert(name="bad", when="learner/mean_return < 5", **{"for": 60}))
    assert look_at(watched, measures, 0.0, a=1.0, b=9.0) == []
    assert look_at(watched, measures, 60.0, a=1.0, b=9.0) == [("bad", "a")]
    assert watched.firing() == [AlertFiring("bad", "a", "learner/mean_return is 1", 60.0)]
    assert look_at(watched, measures, 65.0, a=6.0, b=1.0) == []
    assert look_at(watched, measures, 125.0, a=6.0, b=1.0) == [("bad", "b")]
    assert look_at(watched, measures, 130.0, a=6.0) == []


def test_an_alert_over_the_server_is_evaluated_once() -> None:
    measures = Measures()
    measures.server = {"server/disk_free_bytes": 10.0}
    watched = alerts(measures, alert(name="disk", when="server/disk_free_bytes < 1e9"))
    assert look_at(watched, measures, 1.0, a=1.0, b=1.0) == [("disk", "")]


def test_an_alert_may_be_about_some_learners_only() -> None:
    measures = Measures()
    watched = alerts(measures, alert(name="low", when="learner/mean_return < 5", learners=["shared~*"]))
    assert look_at(watched, measures, 1.0, **{"a": 1.0, "shared~b": 1.0}) == [("low", "shared~b")]


def test_the_growth_of_a_counter_over_some_seconds_fires() -> None:
    measures = Measures()
    watched = alerts(measures, alert(when="increase(learner/restarts) >= 3", over=100))
    found = []
    for time, restarts in ((0.0, 7.0), (50.0, 9.0), (90.0, 10.0), (180.0, 10.0)):
        measures.time, measures.learners = time, {"a": {"learner/restarts": restarts}}
        watched.look()
        found.append(len(watched.firing()))
    assert found == [0, 0, 1, 0]


def test_an_alert_is_logged_and_sent_once_until_it_has_been_quiet(caplog: pytest.LogCaptureFixture) -> None:
    measures = Measures()
    rule = alert(name="low", when="learner/mean_return < 5", quiet=100, do=["log", "notify"], notify=["json://a"])
    watched = alerts(measures, rule)
    with caplog.at_level(logging.INFO):
        for time in (0.0, 50.0, 100.0):
            look_at(watched, measures, time, a=1.0)
        look_at(watched, measures, 110.0, a=9.0)
    assert measures.messages == ["RL4Sys: low of learner a: learner/mean_return is 1"] * 2
    assert [record.levelname for record in caplog.records] == ["WARNING", "WARNING", "INFO"]
    assert caplog.records[-1].message == "The alert 'low' of learner a is over."


def test_changed_alerts_are_used_at_once_and_others_keep_what_they_have_seen() -> None:
    measures = Measures()
    kept, gone = alert(name="kept", when="learner/mean_return < 5"), alert(name="gone", when="learner/mean_return < 6")
    watched = alerts(measures, kept, gone)
    assert len(look_at(watched, measures, 1.0, a=1.0)) == 2
    watched.use([kept, alert(name="new", when="learner/mean_return < 7")], ServiceLimits())
    assert names(watched) == [("kept", "a")]
    look_at(watched, measures, 9.0, a=1.0)
    assert [(each.name, each.seconds) for each in watched.firing()] == [("kept", 8.0), ("new", 0.0)]


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"when": "learner/mean_retrun < 5"}, "mean_return"),
        ({"when": "queue > 5"}, "has no metric queue"),
        ({"when": "learner/failed", "do": ["notify"]}, "no address"),
        ({"when": "learner/failed >"}, "no condition"),
        ({"when": "learner/failed", "do": ["stop"]}, "log"),
    ],
)
def test_an_alert_that_cannot_work_is_refused(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        parse(ServerConfig, {"alerts": [values]})


def test_two_alerts_with_one_name_are_refused_and_one_of_a_built_in_name_replaces_that() -> None:
    own = {"name": DEFAULT_ALERTS[0].name, "when": "learner/queue_share > 0.5"}
    with pytest.raises(ConfigError, match="several alerts"):
        parse(ServerConfig, {"alerts": [own, own]})
    chosen = server_options(parse(ServerConfig, {"alerts": [own]})).service.alerts
    assert [each.when for each in chosen if each.name == own["name"]] == ["learner/queue_share > 0.5"]
    assert len(chosen) == len(DEFAULT_ALERTS)
    assert server_options(parse(ServerConfig, {"default_alerts": False})).service.alerts == ()


def test_a_server_has_every_metric_that_its_alerts_may_read(tmp_path: Path) -> None:
    with TrainingService(tmp_path / "data", THREADS) as service:
        client = ScriptedClient(InProcessTransport(service), join_request("a"))
        client.push(range(5))
        metrics = AlertMetrics(service._learners, service._sessions, service.warnings, lambda: 0, service._clock)
        eventually(lambda: metrics.of_learners(ServiceLimits())["a"].get("learner/updates"))
        measured = metrics.of_server() | metrics.of_learners(ServiceLimits())["a"]
        known = SERVER_METRICS.keys() | LEARNER_METRICS.keys()
        assert measured["server/storing"] == measured["clients/connected"] == 1.0
        assert {name for name in measured if not name.startswith("train/")} <= known
        later = {"learner/mean_return", "learner/checkpoint_age_seconds", "clients/lowest_version"}
        assert known - measured.keys() <= later
        assert any(name.startswith("train/") for name in measured)


def test_the_status_shows_alerts_that_fire_to_those_who_may_see_them(tmp_path: Path) -> None:
    firing = (alert(name="here", when="learner/stored_steps > 0"), alert(name="up", when="server/uptime_seconds >= 0"))
    with TrainingService(tmp_path / "data", replace(THREADS, alerts=firing)) as service:
        ScriptedClient(InProcessTransport(service), join_request("a")).push([0])
        service._alerts._due = 0.0
        service._alerts.look()
        assert [(each.name, each.learner) for each in service.current_status().server.alerts] == [
            ("up", ""),
            ("here", "a"),
        ]
        stranger = Caller(patterns=("b",), role=Role.CLIENT)
        assert not service.current_status(caller=stranger).server.alerts


def test_alerts_of_a_config_file_are_reloaded(tmp_path: Path) -> None:
    path = tmp_path / "server.yaml"
    path.write_text("alerts: [{name: one, when: server/storing == 1}]\nworkers: threads\n")
    with TrainingService(tmp_path / "data", server_options(load_config(path, {})).service) as service:
        path.write_text("alerts: [{name: two, when: server/storing == 1}]\nworkers: threads\n")
        assert service.reload(server_options(load_config(path, {})).service).applied == ["alerts"]
        service._alerts._due = 0.0
        service._alerts.look()
        assert [each.name for each in service.current_status().server.alerts] == ["two"]


def test_what_clients_counted_before_the_server_started_is_left_out(tmp_path: Path) -> None:
    counts = ReportedCounts()
    with TrainingService(tmp_path / "data", THREADS) as service:
        ScriptedClient(InProcessTransport(service), join_request("a"))
        (activity,) = service._sessions.clients()

    def report(uptime: float, drops: int, server_uptime: float) -> int:
        activity.report = status_pb2.ClientReport(uptime_seconds=uptime, drops={"disk_full": drops})
        counts.note(activity, server_uptime)
        return counts.of("a")["drops"]

    assert report(1_000.0, 50, server_uptime=10.0) == 0
    assert report(1_005.0, 53, server_uptime=15.0) == 3
    assert report(2.0, 4, server_uptime=30.0) == 7


def test_every_metric_and_built_in_alert_is_documented() -> None:
    page = (Path(__file__).parents[3] / "docs" / "operations.md").read_text("utf-8")
    assert [name for name in (*SERVER_METRICS, *LEARNER_METRICS) if f"| `{name}` |" not in page] == []
    assert [each.name for each in DEFAULT_ALERTS if f"| `{each.name}` | `{each.when}` |" not in page] == []

"""Alerts: when they fire, how often, and what they do to a run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from experiments.runs import DQN, PPO, small
from rl4sys.alerts import Notifications
from rl4sys.config import ConfigError
from rl4sys.experiments import MetricRecord, Run
from rl4sys.experiments.monitoring import Alerts, Events, MachineMetrics
from rl4sys.experiments.monitoring.alerts import KNOWN_METRICS
from rl4sys.experiments.monitoring.config import AlertConfig


def alerts(directory: Path, *configs: dict[str, Any]) -> Alerts:
    parsed = [AlertConfig.model_validate(config) for config in configs]
    return Alerts(parsed, MachineMetrics(directory), Events(directory / "events.jsonl"))


def record(step: int, **metrics: float) -> MetricRecord:
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    return MetricRecord(step, named, {"seconds": step / 10})


def fired(watched: Alerts, values: list[float]) -> list[int]:
    """The steps, ten apart, at which an alert asks the run to stop."""
    return [step * 10 for step, value in enumerate(values) if watched.note(record(step * 10, x=value)).stop]


def events(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "events.jsonl").read_text().splitlines()]


def test_an_alert_fires_when_its_condition_begins_to_hold_and_then_stays_quiet(tmp_path: Path) -> None:
    watched = alerts(tmp_path, {"when": "x > 1", "do": ["stop"], "quiet": 40})
    assert fired(watched, [0, 2, 2, 0, 2, 2, 2, 2, 2, 2]) == [10, 50, 90]


def test_a_condition_can_be_asked_to_last(tmp_path: Path) -> None:
    watched = alerts(tmp_path, {"when": "x > 1", "do": ["stop"], "for": 20})
    assert fired(watched, [2, 2, 0, 2, 2, 2, 2]) == [50]


def test_a_throughput_that_collapses_is_noticed(tmp_path: Path) -> None:
    watched = alerts(
        tmp_path,
        {"when": "machine/steps_per_second < 0.3 * median(machine/steps_per_second)", "do": ["stop"], "over": 10_000},
    )
    seconds = [0.0, 1.0, 2.0, 3.0, 4.0, 14.0]
    verdicts = [watched.note(MetricRecord(place * 100, {}, {"seconds": at})) for place, at in enumerate(seconds)]
    assert [verdict.stop is not None for verdict in verdicts] == [False] * 5 + [True]


def test_memory_and_disk_are_shares(tmp_path: Path) -> None:
    when = "0 < machine/memory < 1 and 0 < machine/disk < 1 and machine/disk_free > 0"
    assert alerts(tmp_path, {"when": when, "do": ["stop"]}).note(record(1)).stop


def test_what_an_alert_says_is_logged_with_its_values(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    alerts(tmp_path, {"when": "x > 1", "name": "too much"}).note(record(10, x=2.5))
    assert "Alert: too much: at step 10 x is 2.5" in caplog.text
    (event,) = events(tmp_path)
    assert (event["step"], event["event"], event["name"], event["values"]) == (10, "alert", "too much", {"x": 2.5})


@pytest.mark.parametrize(
    ("name", "place", "hint"),
    [
        ("evaluation/retrun", 0, "did you mean 'evaluation/return'?"),
        ("machine/memry", 0, "did you mean 'machine/memory'?"),
        ("episode", 0, "did you mean 'episodes'?"),
        ("loss", 0, "there are: episodes, evaluation/deviation, "),
        ("buffer/aded", 1, "did you mean 'buffer/added'?"),
        ("train/los", 6, "did you mean 'train/loss'?"),
    ],
)
def test_a_misspelt_metric_gets_a_warning_as_soon_as_it_is_certain(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, place: int, hint: str
) -> None:
    watched = alerts(tmp_path, {"when": f"{name} > 1"})
    waiting: list[dict[str, float]] = [{}, {"buffer__added": 1.0}, *([{"evaluation__return": 1.0}] * 2)]
    warnings = []
    for step, metrics in enumerate([*waiting, *([{"train__loss": 1.0}] * 20)]):
        watched.note(record(step, **metrics))
        warnings.append(len(caplog.messages))
    assert (warnings.index(1), warnings[-1]) == (place, 1)
    assert f"there is no metric {name}; {hint}" in caplog.text


def test_what_comes_late_is_not_doubted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    late = "evaluation/return > 1 or rollout/length > 1 or machine/gpu_memory > 1 or train/rollbacks > 1"
    watched = alerts(tmp_path, {"when": late}, {"when": "train/actor_loss > 1"})
    for step in range(40):
        watched.note(record(step, episodes=0.0, buffer__added=1.0))
    # The first updates were of the critic alone.
    watched.note(record(40, train__critic_loss=0.0))
    for step in range(41, 60):
        watched.note(record(step, train__critic_loss=0.0, train__actor_loss=0.0))
    assert not caplog.messages


def test_every_metric_of_a_run_is_known_or_of_its_algorithm_or_buffer(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path))
    run.train()
    names = {name for line in run.directory.metrics.read_text().splitlines() for name in json.loads(line)["metrics"]}
    assert {name for name in names if not name.startswith(("train/", "buffer/"))} <= KNOWN_METRICS
    measured = MachineMetrics(tmp_path).of(record(1)) | MachineMetrics(tmp_path).of(record(1))
    assert measured.keys() <= KNOWN_METRICS


def test_a_resumed_alert_continues_where_it_was(tmp_path: Path) -> None:
    config = {"when": "stalled(x)", "over": 30, "for": 10, "do": ["stop"], "quiet": 30}
    values = [1, 5, 2, 2, 2, 2, 6, 2, 2, 2, 2, 2, 2]
    whole, first, second = (alerts(tmp_path, config) for _ in range(3))
    expected = fired(whole, values)
    steps = [place for place, value in enumerate(values) if place < 6 and first.note(record(place * 10, x=value)).stop]
    second.restore(json.loads(json.dumps(first.state())))
    steps += [place for place, v in enumerate(values) if place >= 6 and second.note(record(place * 10, x=v)).stop]
    assert [step * 10 for step in steps] == expected
    assert expected


def test_alerts_with_the_same_condition_are_not_mixed_up_when_resumed(tmp_path: Path) -> None:
    configs = ({"when": "x > 1", "do": ["stop"], "quiet": 20}, {"when": "x > 1", "quiet": 1_000})
    first, second = alerts(tmp_path, *configs), alerts(tmp_path, *configs)
    assert fired(first, [2, 2, 2]) == [0, 20]
    second.restore(json.loads(json.dumps(first.state())))
    assert second.note(record(30, x=2.0)).stop is None
    assert second.note(record(40, x=2.0)).stop is not None


def test_an_alert_stops_a_run_with_a_checkpoint(tmp_path: Path) -> None:
    run = Run.create(small(PPO, tmp_path, alerts=[{"when": "step >= 96", "do": ["log", "stop"]}]))
    result = run.train()
    assert (result.finished, result.steps) == (False, 96)
    assert run.stopped is not None
    assert [event["event"] for event in events(run.directory.path)] == ["alert", "stop"]
    assert Run.resume(run.directory).train().finished


def test_an_alert_rolls_a_run_back_to_a_checkpoint_from_before_it_began(tmp_path: Path) -> None:
    alert = {"when": "step >= 96 and step < 200", "for": 64, "do": ["rollback"]}
    run = Run.create(small(PPO, tmp_path, alerts=[alert]))
    assert run.train().finished
    (event,) = events(run.directory.path)
    assert (event["event"], event["step"], event["to"]) == ("rollback", 160, 64)


def test_a_run_that_an_alert_rolled_back_resumes_exactly(tmp_path: Path) -> None:
    config = small(DQN, tmp_path, alerts=[{"when": "stalled(episodes) or step >= 128", "do": ["rollback"]}])
    expected = Run.create(config).train().fingerprint
    for at in (96, 130, 200):
        run = Run.create(config)
        run.train(stop=lambda run=run, at=at: run.steps >= at)  # type: ignore[misc]
        assert Run.resume(run.directory).train().fingerprint == expected


def test_an_alert_that_only_tells_changes_nothing(tmp_path: Path) -> None:
    plain = small(PPO, tmp_path)
    telling = small(PPO, tmp_path, alerts=[{"when": "step > 0", "quiet": 1}])
    assert Run.create(plain).train().fingerprint == Run.create(telling).train().fingerprint
    assert plain.digest() == telling.digest()


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook on loopback, and what it got."""
    got: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *values: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Hook) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"json://127.0.0.1:{server.server_port}/hook", got
        server.shutdown()
        thread.join()


def test_a_webhook_gets_one_message_a_minute(
    tmp_path: Path, hook: tuple[str, list[dict[str, Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("apprise")
    address, got = hook
    monkeypatch.setenv("MY_HOOK", address)
    config = AlertConfig.model_validate({"when": "x > 1", "do": ["notify"], "notify": ["env:MY_HOOK"], "quiet": 1})
    now = [0.0]
    messages = Notifications(clock=lambda: now[0])
    watched = Alerts([config], MachineMetrics(tmp_path), Events(tmp_path / "events.jsonl"), messages)
    for step, at in ((10, 0.0), (20, 30.0), (30, 59.0), (40, 61.0)):
        now[0] = at
        watched.note(record(step, x=2.0))
    watched.close()
    assert [message["title"] for message in got] == ["RL4Sys: x > 1"] * 2
    assert "step 10" in got[0]["message"]
    assert "(2 more since the last message)" in got[1]["message"]


def test_a_message_that_cannot_be_sent_is_logged_and_the_run_continues(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("apprise")
    watched = alerts(tmp_path, {"when": "x > 1", "do": ["notify"], "notify": ["json://127.0.0.1:9/secret"]})
    watched.note(record(10, x=2.0))
    watched.close()
    assert "The message 'RL4Sys: x > 1' could not be sent" in caplog.text
    assert "secret" not in caplog.text


def test_an_address_that_cannot_be_used_is_refused_before_a_run_is_made(tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    for address, message in (("nosuch://user:secret@x", "nosuch://…"), ("env:NOT_SET_ANYWHERE", "is not set")):
        alert = {"when": "step > 1", "do": ["notify"], "notify": [address]}
        with pytest.raises(ConfigError, match=message) as caught:
            Run.create(small(PPO, tmp_path, alerts=[alert]))
        assert "secret" not in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("alert", "message"),
    [
        ({"when": "train/loss >"}, "is no condition"),
        ({"when": "step > 1", "do": ["notify"]}, "no address"),
        ({"when": "step > 1", "notify": ["json://x"]}, "does not have 'notify'"),
        (
            {"when": "step > 1", "do": ["explode"]},
            "^The override alerts.0.do.0: got 'explode'; expected one of [^\n]*$",
        ),
        ({"when": "step > 1", "do": []}, "^The override alerts.0.do: got \\[\\]; expected at least 1$"),
    ],
)
def test_an_alert_that_makes_no_sense_is_refused(tmp_path: Path, alert: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        small(PPO, tmp_path, alerts=[alert])

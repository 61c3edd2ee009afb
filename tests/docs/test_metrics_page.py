"""Every metric of runs and servers is on the page of metrics."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.experiments.runs import DQN, OFF_POLICY, PETS, PPO, WORLD_MODEL, small
from tests.experiments.test_offline import config_of
from tests.server.transport.every_metric import EVERYTHING, exposition

from rl4sys.experiments import ExperimentConfig, Run
from rl4sys.experiments.monitoring.alerts import KNOWN_METRICS
from rl4sys.server.alert_config import LEARNER_METRICS, SERVER_METRICS

from .documents import missing, page_text

PENDULUM = {"environment__name": "Pendulum-v1"}
RUNS: dict[str, tuple[Any, dict[str, Any]]] = {
    "ppo": (PPO, {"algorithm__schedules": {"lr": "linear"}}),
    "ppo_rnd": (PPO, {"algorithm__name": "ppo_rnd", "environment__normalize_obs": True}),
    "dqn": (DQN, {}),
    "qr_dqn": (DQN, {"algorithm__name": "qr_dqn", "algorithm__quantiles": 5}),
    "imitating": (DQN, {"algorithm__imitate": {"decisions": 130}, "environment__incumbent": "incumbents:balance"}),
    "sac": (OFF_POLICY, PENDULUM | {"algorithm__name": "sac"}),
    "sac on choices": (OFF_POLICY, {"environment__name": "CartPole-v1", "algorithm__name": "sac"}),
    "droq": (OFF_POLICY, PENDULUM | {"algorithm__name": "droq", "algorithm__policy_delay": 2}),
    "tqc": (OFF_POLICY, PENDULUM | {"algorithm__name": "tqc", "algorithm__quantiles": 5}),
    "td3": (OFF_POLICY, PENDULUM | {"algorithm__name": "td3"}),
    "ddpg": (OFF_POLICY, PENDULUM | {"algorithm__name": "ddpg"}),
    "sql": (OFF_POLICY, PENDULUM | {"algorithm__name": "sql", "algorithm__value_samples": 4}),
    "hindsight": (
        OFF_POLICY,
        {"environment__name": "rl4sys/PointReach-v0", "algorithm__name": "sac", "buffer__type": "hindsight"},
    ),
    "pets": (PETS, PENDULUM),
    "dreamer": (WORLD_MODEL, PENDULUM | {"algorithm__name": "dreamer", "algorithm__horizon": 3}),
    "planet": (
        WORLD_MODEL,
        PENDULUM
        | {"algorithm__name": "planet", "algorithm__horizon": 3, "algorithm__candidates": 12}
        | {"algorithm__elites": 3},
    ),
}
EVALUATED = "dqn"


def test_every_metric_of_a_server_is_explained() -> None:
    assert missing([*SERVER_METRICS, *LEARNER_METRICS], page_text("operations")) == []


def test_every_series_for_prometheus_is_explained() -> None:
    names = set(re.findall(r"^# HELP (\w+) ", exposition(EVERYTHING), re.MULTILINE))
    assert len(names) > 50
    assert missing(names, page_text("metrics")) == []


def test_every_metric_that_alerts_know_is_explained() -> None:
    assert missing(KNOWN_METRICS, page_text("metrics")) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_metric_of_a_run_is_explained(name: str, tmp_path: Path) -> None:
    kind, changes = RUNS[name]
    every = 128 if name == EVALUATED else 0
    config = small(kind, tmp_path, training__total_timesteps=160, training__eval_frequency=every, **changes)
    assert missing(metrics_of(config), page_text("metrics")) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bc", "td3_bc", "iql"])
def test_every_metric_of_a_run_on_data_is_explained(name: str, tmp_path: Path) -> None:
    assert missing(metrics_of(config_of(name, tmp_path)), page_text("metrics")) == []


def metrics_of(config: ExperimentConfig) -> set[str]:
    """The metrics that a run writes; what users name stands as NAME."""
    with Run.create(config) as run:
        run.train()
    records = map(json.loads, run.directory.metrics.read_text().splitlines())
    seen = {re.sub(r"(/info/|/schedule_)\w+", r"\1NAME", name) for record in records for name in record["metrics"]}
    assert any(name.startswith("train/") for name in seen)
    return seen

"""The rules for Prometheus and the dashboard for Grafana name metrics and pages that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.documents import ROOT, anchors
from tests.server.transport.every_metric import EVERYTHING, exposition

from rl4sys.server.alert_config import DEFAULT_ALERTS
from rl4sys.wire.generated import status_pb2

DASHBOARD = json.loads((ROOT / "deploy" / "grafana_dashboard.json").read_text("utf-8"))
RULES = [
    rule
    for group in yaml.safe_load((ROOT / "deploy" / "prometheus_rules.yaml").read_text("utf-8"))["groups"]
    for rule in group["rules"]
]
SAMPLES = [line for line in exposition(EVERYTHING).splitlines() if line.startswith("rl4sys_")]
METRICS = {re.split(r"[{ ]", sample)[0] for sample in SAMPLES}
LABELS = {"instance", "job", "le", *(name for sample in SAMPLES for name in re.findall(r'(\w+)="', sample))}


def expressions() -> Iterator[tuple[str, str]]:
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_metric_and_label_exists(where: str, expression: str) -> None:
    named = set(re.findall(r"\brl4sys_\w+", expression))
    assert named <= METRICS, where
    assert named or "up{" in expression, where
    assert set(re.findall(r"(\w+)\s*(?:=~|!=|=(?!=))\s*\"", expression)) <= LABELS, where
    assert expression.count("(") == expression.count(")"), where


@pytest.mark.parametrize(("where", "expression"), list(expressions()))
def test_every_state_that_is_asked_for_exists(where: str, expression: str) -> None:
    enums = (status_pb2.ServerState, status_pb2.LearnerState)
    states = {name.partition("_STATE_")[2].lower() for enum in enums for name, _ in enum.items()}
    for asked in re.findall(r'\bstate=~?"([^"]+)"', expression):
        assert set(asked.split("|")) <= states, where


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_rule_has_a_heading_of_the_runbook(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    assert anchor in anchors(ROOT / page)
    assert rule["annotations"]["summary"]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))


def test_every_built_in_alert_is_in_the_runbook() -> None:
    page = (ROOT / "docs" / "runbook.md").read_text("utf-8")
    assert [alert.name for alert in DEFAULT_ALERTS if f"the alert `{alert.name}`" not in page] == []


def test_panels_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


def test_alerts_of_the_example_config_are_accepted(tmp_path: Path) -> None:
    from rl4sys.server.config import load_config, server_options

    options = server_options(load_config(ROOT / "deploy" / "server.yaml", {}))
    assert options.token_file == ROOT / "deploy" / "tokens"
    assert options.service.alerts[-1].name == "out of order"

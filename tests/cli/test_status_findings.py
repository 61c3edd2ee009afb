"""What `rl4sys status` says is wrong, and its exit codes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.cli.commands import Here

from rl4sys.client.grpc_transport import GrpcTransport
from rl4sys.operations.status_findings import findings
from rl4sys.operations.status_tables import clients, decision_time, learners, message_values, summary
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

SERVING = {"software": "rl4sys/1", "state": "SERVER_STATE_SERVING", "disk_free_bytes": 10**12}


def status(**parts: Any) -> dict[str, Any]:
    parts["server"] = SERVING | parts.get("server", {})
    return message_values(status_pb2.StatusReply(**parts))


def learner(**fields: Any) -> dict[str, Any]:
    return status(learners=[{"learner": "a", "state": "LEARNER_STATE_WAITING", "control": "follow"} | fields])


def client(report: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    return status(clients=[{"client": "c", "learner": "a", "connected": True, "report": report} | fields])


PROBLEMS = {
    "server: STORAGE_FAILED The disk is full.": status(
        server={"state": "SERVER_STATE_STORAGE_FAILED", "problem": "The disk is full."}
    ),
    "server: DRAINING": status(server={"state": "SERVER_STATE_DRAINING"}),
    "server: only 500 MB are free": status(server={"disk_free_bytes": 500_000_000}),
    "server: tokens cannot be read": status(server={"warnings": ["tokens cannot be read"]}),
    "learner a: alert too old: share is 0.4": status(
        server={"alerts": [{"name": "too old", "learner": "a", "text": "share is 0.4"}]}
    ),
    "learner a: FAILED: it broke → rl4sys learners restart a": learner(
        state="LEARNER_STATE_FAILED", problem="it broke"
    ),
    "learner a: HELD, an operator has to decide: damaged → rl4sys learners show a": learner(
        state="LEARNER_STATE_HELD", problem="damaged"
    ),
    "learner a: 2 clients act with version 9 of another lineage": learner(
        other_lineages=[{"lineage": "x", "version": 9, "clients": 2}]
    ),
    "learner a: no checkpoint for 20 minutes": learner(state="LEARNER_STATE_LEARNING", checkpoint_age_seconds=1_200.0),
    "learner a: its clients are off by order (smoke), 1 not yet": status(
        learners=[{"learner": "a", "control": "off", "control_reason": "smoke"}],
        clients=[{"client": "c", "learner": "a", "connected": True, "report": {}}],
    ),
    "client c: two programs use it": client(warning="two programs use it", connected=False),
    "client c: its policy does not decide (lease)": client({"off": "lease"}),
    "client c: 7 segments, 100 MB wait": client({"backlog_segments": 7, "backlog_bytes": 100_000_000}),
    "client c: 2 of 100 decisions had bad inputs": client({"decisions": 100, "bad_inputs": 2}),
}
NOTES = {
    "learner a: its clients are frozen by order → rl4sys control a follow": learner(control="frozen"),
    "learner a: ignores experience by order (frozen)": learner(frozen=True),
    "learner a: does not learn by order (paused) → rl4sys learners resume a": learner(state="LEARNER_STATE_PAUSED"),
    "learner a: folds its log again: version 12 of 741": learner(version=741, refolded_version=12),
    "learner a: 50% of all steps were not learned from, mostly too_old": learner(
        learned_steps=10_000, unused_steps={"too_old": 9_000, "unknown_version": 1_000}
    ),
    "client c: its policy does not decide (control)": client({"off": "control"}),
    "client c: the fallback made 60 of 100 decisions": client({"decisions": 100, "fallback_decisions": 60}),
    "client c: dropped: 3 outbox_full": client({"drops": {"outbox_full": 3, "late": 0}}),
    "client c: last error: no route": client({"last_error": "no route"}),
    "client c: its connection ended 5 s ago": client({"off": "lease"}, disconnected_seconds=5.0),
    "client c: its connection ended 10 min ago": client(connected=False, disconnected_seconds=600.0),
}
FINE = [
    status(),
    learner(state="LEARNER_STATE_SLEEPING"),
    learner(checkpoint_age_seconds=1e6),
    learner(learned_steps=99, unused_steps={"too_old": 99}),
    client({"decisions": 10**6, "bad_inputs": 9, "backlog_bytes": 1_000}),
    client({"off": "lease"}, connected=False),
    client(connected=False, disconnected_seconds=7_200.0),
]


@pytest.mark.parametrize("text", [*PROBLEMS, *NOTES])
def test_what_an_operator_should_know_is_found_with_its_severity(text: str) -> None:
    (finding,) = findings((PROBLEMS | NOTES)[text])
    assert str(finding).startswith(text)
    assert finding.is_problem is (text in PROBLEMS)


@pytest.mark.parametrize("case", range(len(FINE)))
def test_nothing_is_found_where_nothing_is_wrong(case: int) -> None:
    assert findings(FINE[case]) == []


def test_a_client_that_has_left_is_not_counted_and_owes_no_obedience() -> None:
    left = {"client": "c", "learner": "a", "connected": True, "report": {}, "disconnected_seconds": 1.0}
    obeying = {"client": "d", "learner": "a", "connected": True, "report": {"control_sequence": 7}}
    shown = status(
        server={"connected_clients": 2},
        learners=[{"learner": "a", "control": "off", "control_sequence": 7}],
        clients=[left, obeying],
    )
    assert summary(shown)[0] == "well: 1 learner, 1 connected client"


def test_the_first_line_has_the_first_problem_and_failed_things_come_first() -> None:
    names = {"a": "WAITING", "b": "FAILED", "c": "PAUSED"}
    shown = status(learners=[{"learner": name, "state": f"LEARNER_STATE_{state}"} for name, state in names.items()])
    assert summary(shown)[0] == "WRONG: learner b: FAILED: "
    assert [row[0] for row in learners(shown).rows] == ["b", "c", "a"]
    assert [row[3] for row in learners(shown).rows] == ["FAILED", "paused", "waiting"]


def test_the_state_of_a_learner_names_orders_and_refolding() -> None:
    shown = learner(state="LEARNER_STATE_STARTING", frozen=True, control="off", version=741, refolded_version=12)
    assert learners(shown).rows[0][3] == "starting, frozen, clients off, 12 of 741 refolded"


def test_a_client_is_shown_with_what_it_reports() -> None:
    report = {
        "version": 7,
        "mode": "exploit",
        "decisions": 100,
        "decision_time": [0, 0, 98, 0, 2],
        "drops": {"late": 1},
    }
    table = clients(client(report | {"fallback_decisions": 4, "bad_inputs": 1, "backlog_bytes": 2_000}))
    row = dict(zip(table.names, table.rows[0], strict=True))
    assert (row["version"], row["acts"], row["p50"], row["p99"]) == ("7", "exploit", "<4 µs", "<16 µs")
    assert (row["fallback"], row["bad"], row["backlog"], row["dropped"]) == ("4", "1", "2.0 kB", "1 late")


def test_a_time_beyond_the_last_bucket_has_only_a_lower_bound() -> None:
    assert decision_time([], 0.5) == "–"
    assert decision_time([0] * 23 + [1], 0.5) == "≥4.19 s"
    assert decision_time([0] * 11 + [1], 0.5) == "<2.05 ms"


@pytest.mark.parametrize(
    ("reply", "code", "out"),
    [
        (status_pb2.StatusReply(server=SERVING), 0, "well: 0 learners, 0 connected clients\n"),
        (
            status_pb2.StatusReply(server=SERVING | {"warnings": ["one", "two"]}),
            1,
            "WRONG: server: one (and 1 more problem)\n  ! server: one\n  ! server: two\n",
        ),
        (CallFailed(Code.UNAVAILABLE, "gone"), 2, ""),
        (CallFailed(Code.UNAUTHENTICATED, "who are you"), 2, ""),
    ],
)
def test_a_check_exits_with_whether_the_server_is_well(
    reply: status_pb2.StatusReply | CallFailed, code: int, out: str, rl4sys: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(*_: object, **__: object) -> status_pb2.StatusReply:
        if isinstance(reply, CallFailed):
            raise reply
        return reply

    monkeypatch.setattr(GrpcTransport, "status", answer)
    outcome = rl4sys("status", "127.0.0.1:1", "--check")
    assert (outcome.code, outcome.out) == (code, out)


def test_json_has_the_verdict_and_every_problem(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    reply = status_pb2.StatusReply(server=SERVING, learners=[{"learner": "a", "state": "LEARNER_STATE_FAILED"}])
    monkeypatch.setattr(GrpcTransport, "status", lambda *_, **__: reply)
    outcome = rl4sys("status", "--json", "--check")
    found = json.loads(outcome.out)
    assert (outcome.code, found["verdict"]) == (1, "WRONG: learner a: FAILED: ")
    assert found["problems"] == [{"about": "learner a", "text": "FAILED: ", "command": "rl4sys learners restart a"}]
    assert found["learners"][0]["other_lineages"] == []


def test_check_and_watch_exclude_each_other(rl4sys: Here) -> None:
    assert rl4sys("status", "--check", "--watch").code == 2

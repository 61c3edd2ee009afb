"""What is wrong with a server, its learners and its clients, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

LEAST_DISK_FREE = 1_000_000_000
"""Bytes."""
LONGEST_UNSAVED = 900.0
"""Seconds that a busy learner may go without a checkpoint."""
LARGEST_BACKLOG = 64 << 20
"""Bytes that a client has recorded and not delivered."""
LARGEST_BAD_SHARE = 0.01
"""The share of a client's decisions whose inputs were bad."""
LONGEST_ABSENCE = 3_600.0
"""Seconds after which a client that disconnected is no longer worth a note."""
LARGEST_UNUSED_SHARE = 0.1
"""The share of steps that were sent and not learned from."""
_FEWEST_DECISIONS, _FEWEST_STEPS = 100, 10_000
"""Shares of less are left alone."""
_OFF_BY_ORDER = ("control", "kill_file")
_STATES = {
    "FAILED": ("FAILED", "rl4sys learners restart {name}"),
    "HELD": ("HELD, an operator has to decide", "rl4sys learners show {name}"),
}


class Finding(NamedTuple):
    """One thing that an operator should know."""

    is_problem: bool
    """Whether something is wrong; else it is only worth knowing, such as the effect of an order."""
    about: str
    """`server`, `learner NAME` or `client NAME`."""
    text: str
    command: str = ""
    """What to run next, if one command helps."""

    def to_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"about": self.about, "text": self.text, "command": self.command}

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" + (f" → {self.command}" if self.command else "")


def findings(status: Mapping[str, Any]) -> list[Finding]:
    """Everything worth knowing about a status, problems first."""
    found = list(_server(status["server"]))
    for learner in status["learners"]:
        found += _learner(learner, late_clients(status, learner))
    for client in status["clients"]:
        found += _client(client)
    return sorted(found, key=lambda finding: not finding.is_problem)


def verdict(status: Mapping[str, Any], found: list[Finding]) -> str:
    """One line: `well`, or what is wrong."""
    problems = [finding for finding in found if finding.is_problem]
    if problems:
        others = len(problems) - 1
        more = f" (and {others} more problem{'s' * (others != 1)})" if others else ""
        return f"WRONG: {problems[0].about}: {problems[0].text}{more}"
    learners = len(status["learners"])
    left = {client["client"] for client in status["clients"] if client["connected"] and has_left(client)}
    connected = max(0, status["server"]["connected_clients"] - len(left))
    return f"well: {learners} learner{'s' * (learners != 1)}, {connected} connected client{'s' * (connected != 1)}"


def has_left(client: Mapping[str, Any]) -> bool:
    """Whether a client had a connection, and has none now: its process has ended, or cannot reach the server."""
    return "disconnected_seconds" in client


def _server(server: Mapping[str, Any]) -> Iterator[Finding]:
    state = server["state"].removeprefix("SERVER_STATE_")
    if state not in ("SERVING", "UNSPECIFIED"):
        yield Finding(True, "server", f"{state} {server['problem']}".strip())
    for alert in server["alerts"]:
        about = f"learner {alert['learner']}" if alert["learner"] else "server"
        yield Finding(True, about, f"alert {alert['name']}: {alert['text']}")
    for warning in server["warnings"]:
        yield Finding(True, "server", warning)
    # 0 stands for a server that did not say.
    if 0 < (free := server["disk_free_bytes"]) < LEAST_DISK_FREE:
        yield Finding(True, "server", f"only {free / 1e6:.0f} MB are free on the disk of the data directory")


def late_clients(status: Mapping[str, Any], learner: Mapping[str, Any]) -> int:
    """How many connected clients of a learner have not reported to obey its order."""
    connected = [client for client in status["clients"] if client["connected"] and not has_left(client)]
    reporting = [each["report"] for each in connected if each["learner"] == learner["learner"] and "report" in each]
    if sequence := learner["control_sequence"]:
        return sum(report["control_sequence"] < sequence for report in reporting)
    # A server that does not say which order it is.
    return max(0, len(reporting) - int(learner["obeying_clients"]))


def _learner(learner: Mapping[str, Any], late: int) -> Iterator[Finding]:
    name = learner["learner"]
    about, state = f"learner {name}", learner["state"].removeprefix("LEARNER_STATE_")
    if state in _STATES:
        text, command = _STATES[state]
        yield Finding(True, about, f"{text}: {learner['problem']}", command.format(name=name))
    for other in learner["other_lineages"]:
        clients = f"{other['clients']} client{'s act' if other['clients'] != 1 else ' acts'}"
        text = f"{clients} with version {other['version']} of another lineage, which this learner does not continue"
        yield Finding(True, about, text, f"rl4sys learners show {name}")
    age = learner.get("checkpoint_age_seconds", 0.0)
    if state == "LEARNING" and age > LONGEST_UNSAVED:
        yield Finding(True, about, f"no checkpoint for {age / 60:.0f} minutes, although it learns")
    order = learner["control"]
    if order in ("off", "frozen"):
        reason = f" ({learner['control_reason']})" if learner["control_reason"] else ""
        text = f"its clients are {order} by order{reason}"
        yield Finding(late > 0, about, f"{text}, {late} not yet" if late > 0 else text, f"rl4sys control {name} follow")
    if learner["frozen"]:
        yield Finding(False, about, "ignores experience by order (frozen)", f"rl4sys learners unfreeze {name}")
    if state == "PAUSED":
        yield Finding(False, about, "does not learn by order (paused)", f"rl4sys learners resume {name}")
    if "refolded_version" in learner:
        text = f"folds its log again: version {learner['refolded_version']} of {learner['version']}, which it serves"
        yield Finding(False, about, text)
    unused = sum(learner["unused_steps"].values())
    total = unused + learner["learned_steps"]
    if total >= _FEWEST_STEPS and unused > LARGEST_UNUSED_SHARE * total:
        reason = max(learner["unused_steps"], key=lambda each: learner["unused_steps"][each])
        yield Finding(False, about, f"{unused / total:.0%} of all steps were not learned from, mostly {reason}")


def _client(client: Mapping[str, Any]) -> Iterator[Finding]:
    about = f"client {client['client']}"
    if client["warning"]:
        yield Finding(True, about, client["warning"])
    if has_left(client) and client["disconnected_seconds"] < LONGEST_ABSENCE:
        yield Finding(False, about, f"its connection ended {_ago(client['disconnected_seconds'])} ago")
    if not client["connected"] or has_left(client) or "report" not in client:
        return
    report = client["report"]
    if off := report["off"]:
        yield Finding(off not in _OFF_BY_ORDER, about, f"its policy does not decide ({off})")
    if report["backlog_bytes"] > LARGEST_BACKLOG:
        backlog = f"{report['backlog_segments']} segments, {report['backlog_bytes'] / 1e6:.0f} MB"
        yield Finding(True, about, f"{backlog} wait to be delivered")
    decisions, bad, fallback = report["decisions"], report["bad_inputs"], report["fallback_decisions"]
    if decisions >= _FEWEST_DECISIONS and bad > LARGEST_BAD_SHARE * decisions:
        yield Finding(True, about, f"{bad} of {decisions} decisions had bad inputs")
    if not off and decisions >= _FEWEST_DECISIONS and fallback > 0.5 * decisions:
        yield Finding(False, about, f"the fallback made {fallback} of {decisions} decisions")
    if drops := {reason: count for reason, count in report["drops"].items() if count}:
        listed = ", ".join(f"{count} {reason}" for reason, count in sorted(drops.items()))
        yield Finding(False, about, f"dropped: {listed}")
    if report["last_error"]:
        yield Finding(False, about, f"last error: {report['last_error']}")


def _ago(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"

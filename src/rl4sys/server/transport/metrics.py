"""The status of a server as metrics for Prometheus, with a bounded number of labels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from rl4sys.server.transport.metric_names import NameBudget
from rl4sys.wire.generated import status_pb2

OTHER = "(other)"
"""The label of learners and clients beyond the first ones, which are summed. No name has a parenthesis."""
_Family: TypeAlias = type[GaugeMetricFamily] | type[CounterMetricFamily]
_Rows: TypeAlias = Sequence[tuple[tuple[str, ...], Any]]
"""Label values and messages; several messages with the same labels are summed."""
_MOST_REASONS = 32
_BUCKETS = 24

_SERVER_GAUGES = {
    "uptime_seconds": "Seconds since the server started.",
    "memory_bytes": "Resident memory of the server process without its workers.",
    "data_bytes": "Size of the data directory.",
    "disk_free_bytes": "Free space on the disk of the data directory.",
    "connected_clients": "Clients that called within the last minute.",
}
_SERVER_COUNTERS = {"cpu_seconds": "Processor time without workers."}
_LEARNER_GAUGES = {
    "version": "The newest version of the weights.",
    "clients": "Clients that use it.",
    "queued_segments": "Segments that are stored and not yet learned from.",
    "queued_bytes": "Bytes that are stored and not yet learned from.",
    "mean_return": "Mean return of the last episodes.",
    "checkpoint_age_seconds": "Age of the newest checkpoint.",
    "log_bytes": "Size of the log on disk.",
    "memory_bytes": "Resident memory of the worker process.",
    "refolded_version": "The version that the worker has reached while it folds its log again after a crash.",
    "frozen": "Whether it ignores experience by order.",
    "record_share": "The share of episodes that its clients are asked to record.",
    "weights": "Number of weights of its policy.",
    "obeying_clients": "Clients that reported to have obeyed the order of the operator.",
}
_LEARNER_COUNTERS = {
    "restarts": "Starts of the worker after a failure.",
    "stored_segments": "Segments stored, without repeats.",
    "stored_steps": "Steps stored, without repeats.",
    "stored_bytes": "Bytes of segments stored, without repeats.",
    "learned_steps": "Steps that were learned from.",
    "episodes": "Episodes that ended.",
    "updates": "Updates of the weights.",
    "cpu_seconds": "Processor time of the worker process.",
}
_CLIENT_GAUGES = {
    "version": "The version that it was last sent.",
    "silent_seconds": "Seconds since its last call.",
    "connected": "Whether it called within the last minute.",
    "report_age_seconds": "Age of its last report; 0 if there is none.",
}
_CLIENT_COUNTERS = {
    "stored_segments": "Segments stored, without repeats.",
    "stored_steps": "Steps stored, without repeats.",
    "stored_bytes": "Bytes of segments stored, without repeats.",
    "repeated_segments": "Segments sent again after they had been stored.",
    "delayed_pushes": "Pushes that were refused for the moment: the inbox was full, or they came too fast.",
    "received_bytes": "Bytes of segments pushed.",
    "server_decisions": "Decisions that the server took for it (Act).",
}
_REPORT_GAUGES = {
    "open_episodes": "Open episodes, as the client reports.",
    "backlog_segments": "Segments that are recorded and not acknowledged, as the client reports.",
    "backlog_bytes": "The same in bytes.",
}
_REPORT_COUNTERS = {
    "decisions": "Decisions, as the client reports.",
    "fallback_decisions": "Decisions of the fallback, as the client reports.",
    "bad_inputs": "Observations or results that could not be used, as the client reports.",
    "unanswered_decisions": "Decisions that the server did not answer in time (Act), as the client reports.",
    "thinned_episodes": "Episodes that were not recorded because of record_share, as the client reports.",
    "late_rewards": "Rewards that came too late, as the client reports.",
}
_NOT_SUMMED = frozenset(
    {
        *("version", "mean_return", "checkpoint_age_seconds", "refolded_version", "record_share"),
        *("silent_seconds", "report_age_seconds"),
    }
)
"""Fields whose sum over several learners or clients means nothing."""


class StatusCollector(Collector):
    """The status of a server as metric families, read afresh for each scrape."""

    def __init__(self, status: Callable[[], status_pb2.StatusReply], learners: NameBudget, clients: NameBudget) -> None:
        """The budgets decide which learners and clients have metrics of their own."""
        self._status, self._learners, self._clients = status, learners, clients

    def collect(self) -> Iterable[Metric]:
        """All families of one scrape."""
        reply = self._status()
        yield from _server(reply.server)
        learners: dict[tuple[str, ...], bool] = {(each.learner,): bool(each.clients) for each in reply.learners}
        own = self._learners.choose(learners)
        yield _alerts(reply.server.alerts, {name for (name,) in own})
        yield from _learners(
            [((each.learner,) if (each.learner,) in own else (OTHER,), each) for each in reply.learners]
        )
        yield from _decision_times(reply.clients, {key[0] for key in own})
        chosen = self._clients.choose({(each.client, each.learner): each.connected for each in reply.clients})
        yield from _clients(
            [
                (key if (key := (each.client, each.learner)) in chosen else (OTHER, OTHER), each)
                for each in reply.clients
            ]
        )


def _server(server: status_pb2.ServerStatus) -> Iterator[Metric]:
    info = GaugeMetricFamily("rl4sys_server_info", "What the server is; always 1.", labels=["software", "durability"])
    info.add_metric([server.software, server.durability], 1)
    state = GaugeMetricFamily("rl4sys_server_state", "Whether the server is in this state.", labels=["state"])
    _add_states(state, {(): [server.state]}, status_pb2.ServerState.items())
    calls = CounterMetricFamily(
        "rl4sys_calls", "Calls that ended, by method and status code.", labels=["method", "code"]
    )
    for call in server.calls:
        calls.add_metric([call.method, call.code], call.count)
    failed = CounterMetricFamily(
        "rl4sys_failed_calls", "Calls that did not end in OK, including those without a token.", labels=["code"]
    )
    for code, count in sorted(server.failed_calls.items()):
        failed.add_metric([code], count)
    warnings = GaugeMetricFamily("rl4sys_server_warnings", "Warnings in the status of the server.")
    warnings.add_metric([], len(server.warnings))
    yield from (info, state, calls, failed, warnings)
    yield from _of_each(GaugeMetricFamily, "server", _SERVER_GAUGES, [], [((), server)])
    yield from _of_each(CounterMetricFamily, "server", _SERVER_COUNTERS, [], [((), server)])


def _alerts(firing: Iterable[status_pb2.FiringAlert], own: set[str]) -> Metric:
    counts: dict[tuple[str, ...], float] = defaultdict(float)
    for alert in firing:
        counts[alert.name, alert.learner if not alert.learner or alert.learner in own else OTHER] += 1
    return _family(
        *(GaugeMetricFamily, "rl4sys_alert_firing", "Alerts of the server's config that hold; 1 for each."),
        *(["alert", "learner"], counts),
    )


def _learners(rows: _Rows) -> Iterator[Metric]:
    info = GaugeMetricFamily(
        "rl4sys_learner_info", "What the learner is; always 1.", labels=["learner", "algorithm", "device"]
    )
    states: dict[tuple[str, ...], list[int]] = defaultdict(list)
    unused: dict[tuple[str, ...], float] = defaultdict(float)
    orders: dict[tuple[str, ...], float] = defaultdict(float)
    strangers: dict[tuple[str, ...], float] = defaultdict(float)
    for labels, learner in rows:
        if labels != (OTHER,):
            info.add_metric([*labels, learner.algorithm, learner.device], 1)
        states[labels].append(learner.state)
        for reason, steps in learner.unused_steps.items():
            unused[*labels, reason] += steps
        for mode in ("follow", "frozen", "off"):
            orders[*labels, mode] += (learner.control or "follow") == mode
        strangers[labels] += sum(other.clients for other in learner.other_lineages)
    state = GaugeMetricFamily(
        "rl4sys_learner_state", "Whether the learner is in this state.", labels=["learner", "state"]
    )
    _add_states(state, states, status_pb2.LearnerState.items())
    yield from (info, state)
    yield _family(
        *(CounterMetricFamily, "rl4sys_learner_unused_steps", "Steps that were not learned from, by reason."),
        *(["learner", "reason"], unused),
    )
    yield _family(
        *(GaugeMetricFamily, "rl4sys_learner_control", "Whether this is the order that its clients obey."),
        *(["learner", "mode"], orders),
    )
    yield _family(
        *(GaugeMetricFamily, "rl4sys_learner_other_lineage_clients", "Clients that keep a policy of another lineage."),
        *(["learner"], strangers),
    )
    yield from _of_each(GaugeMetricFamily, "learner", _LEARNER_GAUGES, ["learner"], rows)
    yield from _of_each(CounterMetricFamily, "learner", _LEARNER_COUNTERS, ["learner"], rows)


def _decision_times(clients: Iterable[status_pb2.ClientStatus], own: set[str]) -> Iterator[Metric]:
    """A histogram for each learner, over the clients that report."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * _BUCKETS)
    for client in clients:
        for bucket, count in enumerate(client.report.decision_time):
            counts[client.learner if client.learner in own else OTHER][bucket] += count
    family = HistogramMetricFamily(
        "rl4sys_learner_decision_seconds", "How long decisions of its clients took, as they report.", labels=["learner"]
    )
    for learner, buckets in sorted(counts.items()):
        total, limits = 0, []
        for bucket, count in enumerate(buckets[:-1]):
            total += count
            limits.append((str(2**bucket / 1e6), total))
        limits.append(("+Inf", total + buckets[-1]))
        family.add_metric([learner], limits, sum_value=None)
    yield family


def _clients(rows: _Rows) -> Iterator[Metric]:
    labels = ["client", "learner"]
    refused: dict[tuple[str, ...], float] = defaultdict(float)
    dropped: dict[tuple[str, ...], float] = defaultdict(float)
    deciding: dict[tuple[str, ...], float] = defaultdict(float)
    warned: dict[tuple[str, ...], float] = defaultdict(float)
    known = sorted({reason for _, client in rows for reason in client.report.drops})[:_MOST_REASONS]
    for names, client in rows:
        warned[names] += bool(client.warning)
        for reason, count in client.refused_segments.items():
            refused[*names, reason] += count
        for reason, count in client.report.drops.items():
            dropped[*names, reason if reason in known else OTHER] += count
        if client.HasField("report"):
            deciding[names] += not client.report.off
    yield _family(
        *(CounterMetricFamily, "rl4sys_client_refused_segments", "Segments refused permanently, by reason."),
        *([*labels, "reason"], refused),
    )
    yield _family(
        *(CounterMetricFamily, "rl4sys_client_dropped", "Dropped segments and decisions, as the client reports."),
        *([*labels, "reason"], dropped),
    )
    yield _family(
        *(GaugeMetricFamily, "rl4sys_client_policy_decides", "Whether the policy decides, as the client reports."),
        *(labels, deciding),
    )
    yield _family(
        *(GaugeMetricFamily, "rl4sys_client_warning", "Whether something is wrong with the client, as status says."),
        *(labels, warned),
    )
    yield from _of_each(GaugeMetricFamily, "client", _CLIENT_GAUGES, labels, rows)
    yield from _of_each(CounterMetricFamily, "client", _CLIENT_COUNTERS, labels, rows)
    reports = [(names, client.report) for names, client in rows if client.HasField("report")]
    acting = [(names, report) for names, report in reports if names[0] != OTHER and report.HasField("version")]
    versions = {names: float(report.version) for names, report in acting}
    yield _family(
        *(GaugeMetricFamily, "rl4sys_client_acting_version", "The version that it acts with, as the client reports."),
        *(labels, versions),
    )
    yield from _of_each(GaugeMetricFamily, "client", _REPORT_GAUGES, labels, reports)
    yield from _of_each(CounterMetricFamily, "client", _REPORT_COUNTERS, labels, reports)


def _of_each(
    family: _Family, prefix: str, helps: Mapping[str, str], labels: list[str], rows: _Rows
) -> Iterator[Metric]:
    """A family for each named field, with a sample for each message that has it."""
    for field, help in helps.items():
        values: dict[tuple[str, ...], float] = {}
        for names, message in rows:
            if field in _NOT_SUMMED and OTHER in names:
                continue
            if not message.DESCRIPTOR.fields_by_name[field].has_presence or message.HasField(field):
                values[names] = values.get(names, 0) + getattr(message, field)
        yield _family(family, f"rl4sys_{prefix}_{field}", help, labels, values)


def _family(
    kind: _Family, name: str, help: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]
) -> Metric:
    family = kind(name, help, labels=labels)
    for names, value in sorted(values.items()):
        family.add_metric(names, value)
    return family


def _add_states(
    family: GaugeMetricFamily, found: Mapping[tuple[str, ...], Sequence[int]], states: Iterable[tuple[str, int]]
) -> None:
    """One sample for each state of a proto enum except UNSPECIFIED: how many are in it."""
    for labels, present in found.items():
        for name, number in states:
            if number:
                family.add_metric([*labels, name.partition("_STATE_")[2].lower()], present.count(number))

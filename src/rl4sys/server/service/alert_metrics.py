"""What the alerts of a server read: numbers about the server, and about each learner with its clients."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping

from rl4sys.server.access.sessions import ClientActivity, Sessions
from rl4sys.server.alert_config import LEARNED
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learners import Learners
from rl4sys.server.options import ServiceLimits
from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.service.readiness import readiness
from rl4sys.wire.generated import status_pb2

CONNECTED_SECONDS = 60.0
"""A client that called within this time is connected."""
_REPORTED = ("decisions", "fallback_decisions", "bad_inputs", "late_rewards")


class AlertMetrics:
    """Measures a server when it is asked. Cheaper than the status, whose texts and files it leaves out."""

    def __init__(
        self,
        learners: Learners,
        sessions: Sessions,
        warnings: ServerWarnings,
        failed_calls: Callable[[], int],
        clock: Callable[[], float],
    ) -> None:
        self._learners, self._sessions, self._warnings = learners, sessions, warnings
        self._failed_calls, self._clock = failed_calls, clock
        self._began = clock()
        self._reports = ReportedCounts()

    def of_server(self) -> dict[str, float]:
        """The metrics of the server as a whole."""
        now = self._clock()
        return {
            "server/storing": float(not readiness(self._learners, is_draining=False).problem),
            "server/disk_free_bytes": float(self._learners.storage.free_bytes),
            "server/warnings": float(len(self._warnings.all())),
            "server/learners": float(len(self._learners.all())),
            "server/connected_clients": float(
                len({each.client for each in self._sessions.clients() if _is_connected(each, now)})
            ),
            "server/failed_calls": float(self._failed_calls()),
            "server/uptime_seconds": now - self._began,
        }

    def of_learners(self, limits: ServiceLimits) -> dict[str, dict[str, float]]:
        """The metrics of each learner and its clients, by its name."""
        now = self._clock()
        clients: dict[str, list[ClientActivity]] = defaultdict(list)
        for activity in self._sessions.clients():
            clients[activity.learner.name].append(activity)
        found = {
            each.name: _learner(each, limits, now) | self._clients(clients[each.name], now)
            for each in self._learners.all()
        }
        self._reports.forget_others({(each.client, name) for name, several in clients.items() for each in several})
        # Learners that could not be opened have nothing but their failure.
        return found | {name: {"learner/failed": 1.0} for name in self._learners.problems if name not in found}

    def _clients(self, clients: list[ClientActivity], now: float) -> dict[str, float]:
        connected = [each for each in clients if _is_connected(each, now)]
        reports = [each.report for each in connected if each.report is not None]
        found = {
            "clients/connected": float(len(connected)),
            "clients/silent": float(len(clients) - len(connected)),
            "clients/not_reporting": float(
                sum(each.report is None or now - each.reported_at > CONNECTED_SECONDS for each in connected)
            ),
            "clients/not_deciding": float(sum(bool(report.off) for report in reports)),
            "clients/backlog_bytes": float(sum(report.backlog_bytes for report in reports)),
            "clients/refused_segments": float(sum(each.refused.total() for each in clients)),
            "clients/delayed_pushes": float(sum(each.delayed for each in clients)),
        }
        if versions := [report.version for report in reports if report.HasField("version")]:
            found["clients/lowest_version"] = float(min(versions))
        for each in clients:
            self._reports.note(each, now - self._began)
        counts = self._reports.of(clients[0].learner.name) if clients else Counter[str]()
        return found | {f"clients/{name}": float(counts[name]) for name in (*_REPORTED, "drops")}


class ReportedCounts:
    """What clients counted since the server started: their own counters start with their processes."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], status_pb2.ClientReport] = {}
        self._sums: dict[str, Counter[str]] = defaultdict(Counter)

    def of(self, learner: str) -> Counter[str]:
        """The counts of all clients of a learner."""
        return self._sums[learner]

    def note(self, activity: ClientActivity, uptime: float) -> None:
        """Count what is new in the last report of a client. `uptime` is that of the server, in seconds."""
        report, key = activity.report, (activity.client, activity.learner.name)
        last = self._last.get(key)
        if report is None or report is last:
            return
        self._last[key] = report
        before: Mapping[str, int] = {}
        if last is None and report.uptime_seconds > uptime:
            # It counted before this server started.
            before = _counts(report)
        elif last is not None and report.uptime_seconds >= last.uptime_seconds:
            before = _counts(last)
        after = _counts(report)
        self._sums[activity.learner.name].update({name: max(0, after[name] - before.get(name, 0)) for name in after})

    def forget_others(self, present: set[tuple[str, str]]) -> None:
        """Keep nothing about clients that the server does not know any more."""
        for key in self._last.keys() - present:
            del self._last[key]


def _counts(report: status_pb2.ClientReport) -> dict[str, int]:
    counts = {name: int(getattr(report, name)) for name in _REPORTED}
    return counts | {"drops": sum(report.drops.values())}


def _is_connected(activity: ClientActivity, now: float) -> bool:
    return activity.last_call is not None and now - activity.last_call <= CONNECTED_SECONDS


def _learner(learner: HostedLearner, limits: ServiceLimits, now: float) -> dict[str, float]:
    segments, length = learner.inbox.queued()
    found = {
        "learner/failed": float(learner.condition in (Condition.FAILED, Condition.REFUSED)),
        "learner/held": float(learner.condition is Condition.HELD),
        "learner/paused": float(learner.orders.is_paused),
        "learner/frozen": float(learner.commands.is_frozen),
        "learner/restarts": float(learner.worker.restarts.count),
        "learner/version": float(learner.version),
        "learner/queued_segments": float(segments),
        "learner/queued_bytes": float(length),
        "learner/queue_share": max(segments / limits.inbox_segments, length / limits.inbox_bytes),
        "learner/stored_steps": float(sum(each.steps for each in list(learner.inbox.stored.clients.values()))),
        "learner/log_bytes": float(learner.inbox.log_bytes),
        "learner/other_lineage_clients": float(sum(held.clients for held in learner.history.other_lineages.holders())),
    }
    if learner.saved_at is not None:
        found["learner/checkpoint_age_seconds"] = now - learner.saved_at
    if (progress := learner.progress) is not None:
        found |= {
            "learner/learned_steps": float(progress.steps),
            "learner/unused_steps": float(sum(progress.unused.values())),
            "learner/too_old_steps": float(progress.unused.get("too_old", 0)),
            "learner/episodes": float(progress.episodes),
            "learner/updates": float(progress.updates),
        }
        if progress.mean_return is not None:
            found["learner/mean_return"] = progress.mean_return
        found |= {f"{LEARNED}{name}": value for name, value in progress.metrics.items()}
    return found

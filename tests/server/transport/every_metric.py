"""A status that has everything, and the metrics that a server exports for it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from rl4sys.server.transport.metric_names import NameBudget
from rl4sys.server.transport.metrics import StatusCollector
from rl4sys.wire.generated import status_pb2

EVERYTHING = status_pb2.StatusReply(
    server={
        "calls": [{"method": "Push", "code": "OK", "count": 1}],
        "failed_calls": {"INTERNAL": 1},
        "alerts": [{"name": "disk"}],
    },
    learners=[
        {
            "learner": "a",
            "mean_return": 1.0,
            "checkpoint_age_seconds": 1.0,
            "unused_steps": {"too_old": 1},
            "refolded_version": 1,
        }
    ],
    clients=[
        {
            "client": "c",
            "learner": "a",
            "version": 1,
            "refused_segments": {"MALFORMED": 1},
            "report": {"version": 1, "drops": {"late": 1}, "decision_time": [1]},
        }
    ],
)


def exposition(reply: status_pb2.StatusReply, names: int = 200) -> str:
    """The text that a scraper receives for this status."""
    registry = CollectorRegistry()
    registry.register(StatusCollector(lambda: reply, NameBudget(names), NameBudget(names)))
    return generate_latest(registry).decode()

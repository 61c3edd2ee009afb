"""A server that answers what a test wants."""

from __future__ import annotations

from typing import Any

from rl4sys.ui.fleet import Fleet
from rl4sys.ui.watched_server import WatchedServer
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2

SERVING = {
    "software": "rl4sys/1",
    "state": "SERVER_STATE_SERVING",
    "disk_free_bytes": 10**12,
    "connected_clients": 2,
}
LEARNER = {
    "learner": "shared~cache",
    "algorithm": "PPO",
    "state": "LEARNER_STATE_LEARNING",
    "control": "follow",
    "version": 41,
    "clients": 2,
    "queued_segments": 3,
    "learned_steps": 1_000,
    "mean_return": 12.5,
    "restarts": 1,
}
REPORT = {
    "version": 40,
    "mode": "explore",
    "decisions": 1_000,
    "fallback_decisions": 7,
    "bad_inputs": 2,
    "backlog_bytes": 2_000,
    "drops": {"outbox_full": 3},
    "decision_time": [0, 0, 98, 0, 2],
}
CLIENT = {
    "client": "node-1",
    "learner": "shared~cache",
    "software": "rl4sys-python/1",
    "connected": True,
    "silent_seconds": 1.0,
    "report": REPORT,
}


def reply(**parts: Any) -> status_pb2.StatusReply:
    """A status with one learner and two clients, unless the test wants other ones."""
    clients = [CLIENT, CLIENT | {"client": "node-2"}]
    return status_pb2.StatusReply(**{"server": SERVING, "learners": [LEARNER], "clients": clients} | parts)


class FakeSource:
    """Answers with `reply`, or fails with `error` while there is one."""

    def __init__(self, answer: status_pb2.StatusReply | None = None) -> None:
        self.reply, self.error, self.asked = answer or reply(), None, 0
        self.error: CallFailed | None

    def status(self, request: status_pb2.StatusRequest, timeout: float) -> status_pb2.StatusReply:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.reply

    def close(self) -> None:
        pass


AWAY = CallFailed(Code.UNAVAILABLE, "failed to connect")


def fake_fleet(*sources: FakeSource, seconds: float = 0.02) -> Fleet:
    """A fleet of servers named server-1:1, server-2:1, …"""
    return Fleet([WatchedServer(f"server-{n}:1", source) for n, source in enumerate(sources, 1)], seconds)

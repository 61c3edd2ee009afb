"""A WSGI application whose workers ask a policy which backend takes a request."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import rl4sys

BACKENDS = ("one", "two", "three")
_agent: rl4sys.Agent | None = None
"""That of this worker; the parent has none."""


def connect_worker(number: int) -> None:
    """Call it in each worker, after the fork. Without a server the first backend takes all requests."""
    global _agent
    settings = {
        "server": os.environ.get("RL4SYS_SERVER", "127.0.0.1:50051"),
        "client_id": f"web-{number}",
        "policy_id": "web",
        "algorithm": "DQN",
        "observation": len(BACKENDS),
        "action": len(BACKENDS),
    }
    _agent = rl4sys.connect(settings, fallback=lambda observation: 0)


def close_worker() -> None:
    """Call it in each worker before it ends: what is recorded is sent."""
    global _agent
    if _agent is not None:
        _agent.close()
        _agent = None


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request from the backend that the policy chose; a quick answer is a good one."""
    if _agent is None:
        raise RuntimeError("This worker is not connected: call connect_worker after the fork.")
    with _agent.episode() as episode:
        backend = BACKENDS[episode.act(loads())]
        begin = time.perf_counter()
        answer = f"from backend {backend}\n".encode()
        episode.reward(begin - time.perf_counter())
        episode.end()
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", str(len(answer)))])
    return [answer]


def loads() -> list[float]:
    """How busy each backend is; yours knows better."""
    return [0.0 for _ in BACKENDS]

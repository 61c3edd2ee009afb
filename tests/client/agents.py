"""Agents for tests: connected to a fake server, with settings as a user writes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rl4sys.client import Agent, Episode, connect
from rl4sys.client.fallback import Fallback
from rl4sys.experience import Array
from rl4sys.wire.calls import Transport

SETTINGS = {"client_id": "test", "observation": 8, "action": 4, "timeout": 5, "send_interval": 0.0, "seed": 0}


def agent_on(transport: Transport, fallback: Fallback | None = None, **settings: Any) -> Agent:
    return connect(SETTINGS | settings, transport=transport, fallback=fallback)


def seen(step: int) -> Array:
    """An observation whose value is its step."""
    return np.full(8, step, np.float32)


def steps(episode: Episode, count: int, first: int = 0) -> None:
    """Act and reward; step k observes k and earns k."""
    for step in range(first, first + count):
        episode.act(seen(step))
        episode.reward(step)

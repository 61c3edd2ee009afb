"""`rl4sys.connect_async`: connects in another thread, so that an event loop runs on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rl4sys.client.agent import Agent
from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.connection import connect
from rl4sys.client.fallback import Fallback
from rl4sys.wire.calls import Transport


async def connect_async(
    config: str | Path | Mapping[str, Any] | ClientSettings,
    transport: Transport | None = None,
    fallback: Fallback | None = None,
) -> Agent:
    """As `connect`, without blocking the event loop. Use the agent in `async with`, which closes it likewise."""
    executor = ThreadPoolExecutor(1, thread_name_prefix="rl4sys-connect")
    connecting = executor.submit(connect, config, transport, fallback)
    executor.shutdown(wait=False)
    try:
        return await asyncio.wrap_future(connecting)
    except asyncio.CancelledError:
        # The thread cannot be interrupted; an agent that it returns later belongs to no one.
        connecting.add_done_callback(_close_unused)
        raise


def _close_unused(connecting: Future[Agent]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result().close(timeout=0.0)

"""`rl4sys.connect`: makes an agent from a config file, with the transport for its server, and waits for its policy."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.client.agent import Agent, Start
from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.fallback import Fallback
from rl4sys.client.retries import is_unanswered
from rl4sys.client.section import SettingsError
from rl4sys.client.settings import load_settings
from rl4sys.client.signals_blocked import signals_blocked
from rl4sys.records import fresh_epoch
from rl4sys.suggestions import did_you_mean
from rl4sys.wire.calls import Transport

_IN_PROCESS = "inproc://"
PROFILE = "RL4SYS_PROFILE"
"""The environment variable of a program that is measured: the directory for what is found."""
_published: dict[str, Transport] = {}


class ConnectError(ConnectionError):
    """There is no policy to act with: the server is unreachable or refuses, and there is no cache and no fallback."""


def connect(
    config: str | Path | Mapping[str, Any] | ClientSettings,
    transport: Transport | None = None,
    fallback: Fallback | None = None,
) -> Agent:
    """Connect to the server and return an agent that is ready to act.

    Waits up to `timeout` seconds for the server. After that, or as soon as the connection is refused, the agent acts
    with the policy of an earlier start (`cache: DIR`) or calls `fallback` with each observation, and keeps trying to
    connect in the background. Without either it waits for a server that may be starting.
    """
    settings = load_settings(config)
    epoch = fresh_epoch()
    # Microseconds since 1970: larger at every start, even after small corrections of the clock.
    start = Start(epoch, time.time_ns() // 1000, epoch if settings.seed is None else settings.seed, time.monotonic)
    carrier = transport_for(settings) if transport is None else transport
    try:
        agent = Agent(settings, carrier, start, fallback, owns_transport=transport is None)
    except BaseException:
        if transport is None:
            carrier.close()
        raise
    try:
        refused = agent.wait_for_policy(settings.timeout, until_unreachable=fallback is not None)
    except BaseException:
        # Ctrl-C while waiting: the caller never gets the agent and could not stop its threads.
        agent.close(timeout=0.0)
        raise
    if not agent.has_policy and refused is None:
        agent.use_cached_policy()
    if refused is None and (agent.has_policy or fallback is not None):
        if PROFILE in os.environ:
            # Imported here: hardly any program is measured.
            from rl4sys.client.profiler import start_profile

            start_profile(agent, Path(os.environ[PROFILE]))
        return agent
    problem = agent.problem
    agent.close(timeout=0.0)
    if refused is not None:
        raise ConnectError(
            f"The server {settings.server} refuses client '{settings.client_id}': {refused}"
        ) from refused
    otherwise = "or let the system start without it: give `cache: DIR` or a fallback."
    if problem is not None and not is_unanswered(problem):
        raise ConnectError(
            f"The server {settings.server} had no policy for client '{settings.client_id}' within "
            f"{settings.timeout:g} s: {problem} See `rl4sys status {settings.server}`, {otherwise}"
        ) from problem
    raise ConnectError(
        f"No answer from the server {settings.server} within {settings.timeout:g} s"
        f"{f' ({problem})' if problem else ''}. Start it with `rl4sys serve`, correct `server` in the config, "
        f"{otherwise}"
    ) from problem


def publish_in_process(name: str, transport: Transport) -> None:
    """Register a transport as `server: inproc://NAME` within this process."""
    _published[name] = transport


def withdraw_in_process(name: str) -> None:
    """Remove a registered transport."""
    _published.pop(name, None)


def transport_for(settings: ClientSettings) -> Transport:
    """A transport for one client, which may close it."""
    address = settings.server
    if address.startswith(_IN_PROCESS):
        name = address.removeprefix(_IN_PROCESS)
        if name not in _published:
            raise SettingsError(
                f"server: no transport named '{name}' is published in this process{did_you_mean(name, _published)}. "
                f"Start the embedded server first, or give `host:port`."
            )
        return _Shared(_published[name])
    # Imported here: a client within the server's process needs no grpcio. Its notes on forks are not for users.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    from rl4sys.client.grpc_transport import GrpcTransport

    # The threads of gRPC inherit it, too.
    with signals_blocked():
        return GrpcTransport(settings)


class _Shared:
    """A transport that several clients share: one client closing it leaves it open for the others."""

    def __init__(self, transport: Transport) -> None:
        self.join, self.push, self.pull = transport.join, transport.push, transport.pull
        self.watch, self.act = transport.watch, transport.act
        self.report, self.status = transport.report, transport.status

    def close(self) -> None:
        """Do nothing: other clients may still use the transport."""

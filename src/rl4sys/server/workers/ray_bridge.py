"""The host's side of the bridge to Ray: one process that has joined a cluster, and starts workers there.

The process that acknowledges experience does not import Ray, and does not wait for it.
"""

from __future__ import annotations

import importlib.util
import json
import socket
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from rl4sys.server.workers.fork_server import MAX_MESSAGE_BYTES, ForkServer
from rl4sys.server.workers.learner_limits import WorkerOptions

_MODULE = "rl4sys.server.workers.bridge_on_ray"


class RayUnfit(ValueError):
    """Workers cannot run on Ray; says why, and what to do."""


class RayPlace(NamedTuple):
    """Where workers run, and what each of them gets."""

    address: str | None = None
    """`auto` or HOST:PORT of a cluster; None to start Ray on this machine."""
    cpus: float = 1.0
    gpus: float = 0.0


class RelayedWorker:
    """A worker on another machine, which was requested and may not have started yet."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    @property
    def pid(self) -> int | None:
        """None: it is not on this machine."""
        return None

    def wait_for_start(self) -> None:
        """Wait until the bridge has taken the request; raises `OSError` if there is no cluster."""
        if problem := _answer(self._channel):
            raise OSError(problem)

    def wait_for_exit(self) -> int | None:
        """Wait until it has ended; 0, or None if the bridge ended before it."""
        return 0 if self._channel.recv(MAX_MESSAGE_BYTES) else None

    def kill(self) -> None:
        """End it at once."""
        with suppress(OSError):
            self._channel.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Release one that has ended."""
        self._channel.close()


class RayBridge:
    """Starts the bridge with the first request, and again if it died. It ends with its host."""

    def __init__(self, place: RayPlace) -> None:
        self._address = place.address
        self._process = ForkServer(_MODULE, json.dumps(place._asdict()))

    def require_cluster(self) -> None:
        """Join the cluster, or raise `RayUnfit`."""
        # Here and not above: other servers need no environments, which that package imports.
        from rl4sys.collection.cluster_address import ClusterUnfit, require_cluster

        if importlib.util.find_spec("ray") is None:
            raise RayUnfit("Workers on Ray need the package 'ray'. Install it with: pip install 'rl4sys[train,ray]'")
        try:
            require_cluster(self._address)
        except ClusterUnfit as error:
            raise RayUnfit(str(error)) from error
        with self._process.request({"join": True}) as channel:
            if problem := _answer(channel):
                self.kill()
                raise RayUnfit(problem)

    def fork(self, requests: int, events: int, directory: Path, level: int, options: WorkerOptions) -> RelayedWorker:
        """Request a worker that uses these ends of pipes, which also stay open here. Does not wait for its start."""
        message = {"directory": str(directory), "level": level, "options": options.to_json()}
        return RelayedWorker(self._process.request(message, requests, events))

    def kill(self) -> None:
        """End the bridge, and with it every worker; what is acknowledged is in the logs."""
        self._process.kill()


def _answer(channel: socket.socket) -> str:
    """What is wrong, or nothing."""
    message = channel.recv(MAX_MESSAGE_BYTES)
    problem: str = json.loads(message or '{"problem": "the bridge to Ray has ended"}').get("problem", "")
    return problem

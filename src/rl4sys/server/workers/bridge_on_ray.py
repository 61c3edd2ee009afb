"""The bridge to Ray: `python -m rl4sys.server.workers.bridge_on_ray PLACE SOCKET`. Its host's side is `ray_bridge`.

It joins the cluster, and for each request starts an actor there and relays between it and the host. It exits when its
host is gone, and Ray ends its actors.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError, RayTaskError

from rl4sys.collection.cluster_address import ClusterUnfit
from rl4sys.collection.cluster_on_ray import join_cluster
from rl4sys.server.workers.fork_server import MAX_MESSAGE_BYTES
from rl4sys.server.workers.learner_limits import WorkerOptions
from rl4sys.server.workers.ray_bridge import RayPlace
from rl4sys.server.workers.relay import Relay, RelayOrder, RemoteLost
from rl4sys.server.workers.remote_worker import RemoteWorker

_LOOK_SECONDS = 1.0
"""How often a call looks whether its worker was killed: Ray would wait without end for one that never starts."""
_CALLS = 4
"""Calls of one worker at a time: the events, the records and the requests each have a thread."""


class RayActor:
    """A `RemoteWorker` in an actor on a node of the cluster."""

    def __init__(self, place: RayPlace, order: str) -> None:
        # Ray must not restart it by itself: a new one needs the newest checkpoint.
        options = {"num_cpus": place.cpus, "num_gpus": place.gpus, "max_restarts": 0, "max_concurrency": _CALLS}
        self._actor: Any = ray.remote(**options)(RemoteWorker).remote(order)
        self._is_closed = False

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method and wait for its reply."""
        try:
            reply = getattr(self._actor, method).remote(*arguments)
            while True:
                if self._is_closed:
                    raise RemoteLost("The worker was ended.")
                with suppress(GetTimeoutError):
                    return ray.get(reply, timeout=_LOOK_SECONDS)
        except RayTaskError as error:
            cause = error.cause if isinstance(error.cause, Exception) else error
            line = str(cause).strip().splitlines()[-1:]
            raise RemoteLost(f"The worker on Ray failed: {type(cause).__name__}: {' '.join(line)}") from error
        except RayError as error:
            raise RemoteLost(f"The worker or its node was lost ({type(error).__name__}).") from error

    def close(self) -> None:
        """End the actor."""
        if not self._is_closed:
            self._is_closed = True
            ray.kill(self._actor)


def serve(host: socket.socket, place: RayPlace) -> None:
    """Carry out the requests of the host until it is gone."""
    ready = selectors.DefaultSelector()
    ready.register(host, selectors.EVENT_READ)
    while True:
        for key, _ in ready.select():
            if isinstance(key.data, Relay):
                # The host wants this one to end at once, or it has ended.
                ready.unregister(watched := key.fileobj)
                assert isinstance(watched, socket.socket)
                watched.close()
                key.data.kill()
                continue
            message, descriptors, _, _ = socket.recv_fds(host, MAX_MESSAGE_BYTES, 3)
            if not message:
                return
            channel = socket.socket(fileno=descriptors.pop())
            if relay := _begin(json.loads(message), descriptors, channel, place):
                ready.register(channel.dup(), selectors.EVENT_READ, relay)


def _begin(values: dict[str, Any], pipes: list[int], channel: socket.socket, place: RayPlace) -> Relay | None:
    """Answer a request, and start a relay if it asks for a worker."""
    try:
        if not ray.is_initialized():
            join_cluster(place.address)
            # Ray has set handlers of its own.
            _ignore_signals()
    except ClusterUnfit as error:
        with channel, suppress(BrokenPipeError):
            channel.send(json.dumps({"problem": str(error)}).encode())
        for pipe in pipes:
            os.close(pipe)
        return None
    channel.send(b"{}")
    if "join" in values:
        channel.close()
        return None
    order = RelayOrder(Path(values["directory"]), values["level"], WorkerOptions.from_json(values["options"]))
    requests, events = pipes
    relay = Relay(order, requests, events, partial(RayActor, place))
    threading.Thread(target=_run, args=(relay, channel), name=f"relays {order.directory.name}", daemon=True).start()
    return relay


def _run(relay: Relay, channel: socket.socket) -> None:
    relay.run()
    with channel, suppress(OSError):
        channel.send(b"{}")
        channel.shutdown(socket.SHUT_RDWR)


def main(place: str, descriptor: str) -> None:
    """Serve until the host is gone, then leave the cluster."""
    _ignore_signals()
    serve(socket.socket(fileno=int(descriptor)), RayPlace(**json.loads(place)))
    ray.shutdown()
    # Threads of relays may still wait for what is gone.
    os._exit(0)


def _ignore_signals() -> None:
    """Ctrl-C reaches every process of a terminal, and the host decides. Processes that Ray starts inherit nothing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: None)


if __name__ == "__main__":
    main(*sys.argv[1:])

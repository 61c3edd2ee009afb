"""The task of one rank of a trial whose ranks are processes on a cluster."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rl4sys.config import use_copies
from rl4sys.config.plugin_copies import write_copies
from rl4sys.experiments.ranks import RankPlace
from rl4sys.experiments.ranks.rank_group import RankLost
from rl4sys.experiments.ranks.run_rank import run_rank
from rl4sys.laboratory.trials.launcher import Report
from rl4sys.laboratory.trials.trial import train

_GET_ADDRESS = 0x8915
"""Linux: the address of a network interface."""


def train_rank(values: Mapping[str, Any], report: Report, stop: Callable[[], bool]) -> bool:
    """Take part in a trial: rank 0 trains it as a single process would, and the others follow.

    The values are those of `Trial.launch`, with the `place` of the rank and the `address` of its machine.
    """
    place = RankPlace(**values["place"])
    if place.host != "127.0.0.1" and (interface := interface_of(values["address"])) is not None:
        # gloo would take the address of the host's name, which other machines may not reach.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", interface)
    if place.rank > 0:
        # It has nothing to save when the process that started it ends.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        use_copies(write_copies(Path(), values["plugins"]))
    try:
        finished = run_rank(
            place, lambda group: train(values, report, stop, group), lambda port: report({"port": port})
        )
    except RankLost as error:
        report({"rank_lost": str(error)})
        raise
    return place.rank > 0 or finished is True


def interface_of(address: str) -> str | None:
    """The network interface of this machine that has an address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for _, name in socket.if_nameindex():
            request = array.array("B", struct.pack("256s", name.encode()[:15]))
            try:
                fcntl.ioctl(any_socket.fileno(), _GET_ADDRESS, request, True)
            except OSError:
                continue
            if socket.inet_ntoa(request[20:24].tobytes()) == address:
                return name
    return None

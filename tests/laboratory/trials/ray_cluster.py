"""A Ray cluster of several nodes on this machine, for tests."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster


class SmallCluster:
    """A head without cores, and nodes with one core each."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.nodes: list[Any] = []

    @property
    def address(self) -> str:
        """Where to join it."""
        return str(self._cluster.address)

    def add(self, cpus: int = 1) -> None:
        """Add a node."""
        self.nodes.append(self._cluster.add_node(num_cpus=cpus))

    def kill(self, place: int) -> None:
        """Kill a node without warning, with all its processes."""
        self._cluster.remove_node(self.nodes.pop(place), allow_graceful=False)


@contextmanager
def small_cluster(nodes: int) -> Iterator[SmallCluster]:
    """A cluster that is gone afterwards, with its files."""
    # The path of a Unix socket must be short, which that of a test's own directory is not.
    directory = tempfile.mkdtemp(prefix="ray", dir="/tmp")
    quiet = {"include_dashboard": False, "temp_dir": directory}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **quiet})
    try:
        small = SmallCluster(cluster)
        for _ in range(nodes):
            small.add()
        yield small
    finally:
        cluster.shutdown()
        shutil.rmtree(directory, ignore_errors=True)


def wait_for(condition: Callable[[], bool], seconds: float = 300.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


def trial_processes(directory: Path) -> list[int]:
    """The processes of trials that have begun to print below a directory or train in a temporary one."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if b"rl4sys.laboratory.trials.worker_process" in words and f"RL4SYS_TEST={directory}".encode() in environment:
            found.append(int(entry.name))
    return found


def kill(pid: int) -> None:
    """End a process at once."""
    os.kill(pid, signal.SIGKILL)

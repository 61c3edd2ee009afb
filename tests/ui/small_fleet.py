"""A real server with three clients, each a process that a test may kill."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from tests.faults.processes import ROOT, Server
from tests.server.clients import eventually

from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

CLIENTS = ("node-1", "node-2", "node-3")
LEARNER = "shared~cache"
_SMALL = {
    "algorithm": {"name": "PPO", "epochs": 2, "minibatch_size": 32},
    "network": {"actor": {"hidden_dims": [8]}, "critic": {"hidden_dims": [8]}},
    "buffer": {"size": 128},
    "seed": 5,
}
_CONFIG = "limits: {report_seconds: 0.5, checkpoint_seconds: 2}\n"


class SmallFleet:
    """Three clients that share a learner."""

    def __init__(self, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        (place / "server.yaml").write_text(_CONFIG)
        self.server = Server(place, "--config", str(place / "server.yaml"), "--workers", "threads")
        self._log = (place / "clients.log").open("ab")
        self._clients: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start everything, and wait until the server has heard of all clients and published a version."""
        self.server.start()
        for name in CLIENTS:
            self.start_client(name)
        eventually(self._is_busy, 120.0)

    def start_client(self, name: str) -> None:
        settings = {
            "client_id": name,
            "policy_id": "cache",
            "server": self.server.address,
            "observation": 3,
            "action": 2,
            "reward_window": 0,
            **_SMALL,
        }
        self._clients[name] = subprocess.Popen(
            [sys.executable, "-m", "tests.ui.fleet_client", json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
            cwd=ROOT,  # type: ignore[call-overload]
        )

    def kill_client(self, name: str) -> None:
        client = self._clients.pop(name)
        client.kill()
        client.communicate()

    def close(self) -> None:
        for name in list(self._clients):
            self.kill_client(name)
        self.server.close()
        self._log.close()

    def _is_busy(self) -> bool:
        try:
            status = self.server.transport.status(status_pb2.StatusRequest(), 10.0)
        except CallFailed:
            # On a loaded machine it is still importing what learners need.
            return False
        reporting = [client for client in status.clients if client.HasField("report") and client.report.decisions]
        return len(reporting) == len(CLIENTS) and status.learners[0].version > 0

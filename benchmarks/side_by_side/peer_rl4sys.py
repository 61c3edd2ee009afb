"""PPO of RL4Sys, 64×64: the client in the system, the training server in processes of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from typing import Any

from measurement import cpu_seconds
from systems import CANDIDATES, CONTEXT_SIZE, ROW_SIZE, Work

import rl4sys

_ROLLOUT = 2048
_VECTOR: dict[str, Any] = {
    "observation": 8,
    "action": 4,
    "algorithm": {"name": "ppo"},
    "network": {"actor": {"hidden_dims": [64, 64]}, "critic": {"hidden_dims": [64, 64]}},
}
_ROWS: dict[str, Any] = {
    "candidates": [CANDIDATES, ROW_SIZE],
    "observation": {"context": CONTEXT_SIZE},
    "algorithm": {"name": "ppo", "lr": 1e-3, "gamma": 1.0, "gae_lambda": 0.97, "minibatch_size": 512},
    "network": {"actor": {"type": "candidates", "hidden_dims": [32, 16], "activation": "relu"}},
    "reward_window": 0,
}


class Rl4sys:
    """A client and its server."""

    def __init__(self, work: Work, seed: int) -> None:
        self._data = tempfile.TemporaryDirectory(prefix="rl4sys-side-by-side-")
        command = [sys.executable, "-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", self._data.name]
        self._server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert self._server.stdout is not None
        self._address = f"127.0.0.1:{self._server.stdout.readline().split()[1]}"
        settings = {"client_id": "system", "server": self._address, "seed": seed, "timeout": 60}
        settings |= {"buffer": {"size": _ROLLOUT}} | (_ROWS if work.has_rows else _VECTOR)
        self._agent = rl4sys.connect(settings)
        self._done: dict[str, Any] | None = None
        self._episode = self._agent.episode()

    def act(self, observation: Any) -> int:
        """The policy decides in this process."""
        return int(self._episode.act(observation))

    def reward(self, value: float) -> None:
        """Add to the reward of the latest action."""
        self._episode.reward(value)

    def end(self, observation: Any, *, truncated: bool) -> None:
        """End the episode, and begin the next."""
        self._episode.end(observation, rl4sys.Ending.TRUNCATED if truncated else rl4sys.Ending.TERMINATED)
        self._episode = self._agent.episode()

    def kill_trainer(self) -> None:
        """kill -9 of the server."""
        self._done = self._report()
        os.kill(self._server.pid, signal.SIGKILL)

    def close(self) -> dict[str, Any]:
        """End everything; what it did."""
        done = self._done or self._report()
        self._agent.close(timeout=2.0)
        self._server.terminate()
        self._server.wait()
        self._data.cleanup()
        return done

    def _report(self) -> dict[str, Any]:
        health, traffic = self._agent.health(), self._agent.traffic
        trainer_cpu = cpu_seconds(self._server.pid)
        status = subprocess.run(
            [sys.executable, "-m", "rl4sys.cli", "status", self._address, "--json"],
            capture_output=True,
            text=True,
            check=True,
        )
        (learner,) = json.loads(status.stdout)["learners"]
        return {
            "updates": learner["updates"],
            # Without what waits for the next update.
            "used": min(learner["learned_steps"], learner["updates"] * _ROLLOUT),
            "recorded": 1.0 - health.unrecorded_decisions / max(1, health.decisions),
            "bytes_per_decision": traffic.sent_bytes / max(1, health.decisions),
            "bytes_per_update": traffic.received_bytes / health.version if health.version else None,
            "trainer_cpu": trainer_cpu,
        }

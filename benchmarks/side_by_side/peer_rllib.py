"""PPO of RLlib, 64×64: its RLlink client in the system, its algorithm in a process of its own."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measurement import cpu_seconds
from ray.rllib.core import COMPONENT_RL_MODULE, Columns
from ray.rllib.env.external.rllink import RLlink, get_rllink_message, send_rllink_message
from ray.rllib.env.single_agent_episode import SingleAgentEpisode
from systems import WORKS, Work

_ROLLOUT = 2048
_LONGEST_START = 120.0


class Rllib:
    """Decides in the system's process, and waits for the trainer after every rollout, as on-policy learning asks."""

    def __init__(self, work: Work, seed: int) -> None:
        name = next(name for name, each in WORKS.items() if each is work)
        port = _free_port()
        command = [sys.executable, str(Path(__file__).parent / "rllib_trainer.py"), name, str(port), str(seed)]
        self._trainer = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._socket = self._connected(port)
        self._ask(RLlink.PING)
        config = pickle.loads(self._ask(RLlink.GET_CONFIG)["config"])  # noqa: S301
        self._module = config.get_rl_module_spec(spaces={"default_policy": (work.observation, work.action)}).build()
        self._take(self._ask(RLlink.GET_STATE))
        self._rng = np.random.default_rng(seed)
        self._episodes: list[SingleAgentEpisode] = []
        self._pending: dict[str, Any] | None = None
        self._reward, self._steps, self._updates, self._sent, self._received = 0.0, 0, 0, 0, 0
        self._trainer_cpu = 0.0

    def act(self, observation: Any) -> int:
        """The policy decides in this process."""
        if self._pending is None:
            self._episodes.append(SingleAgentEpisode(observations=[observation]))
        else:
            self._record(observation)
        with torch.no_grad():
            batch = {Columns.OBS: torch.as_tensor(observation)[None]}
            logits = self._module.forward_exploration(batch)[Columns.ACTION_DIST_INPUTS][0].numpy()
        weights = np.exp(logits - logits.max())
        action = int(self._rng.choice(len(weights), p=weights / weights.sum()))
        log_prob = float(np.log(weights[action] / weights.sum()))
        noted = {Columns.ACTION_DIST_INPUTS: logits, Columns.ACTION_LOGP: log_prob}
        self._pending = {"action": action, "extra_model_outputs": noted}
        return action

    def reward(self, value: float) -> None:
        """Add to the reward of the latest action."""
        self._reward += value

    def end(self, observation: Any, *, truncated: bool) -> None:
        """End the episode."""
        self._record(observation, terminated=not truncated, truncated=truncated)
        self._pending = None

    def kill_trainer(self) -> None:
        """kill -9 of the algorithm."""
        self._trainer_cpu = cpu_seconds(self._trainer.pid)
        os.kill(self._trainer.pid, signal.SIGKILL)

    def close(self) -> dict[str, Any]:
        """End everything; what it did."""
        if self._trainer.poll() is None:
            self._trainer_cpu = cpu_seconds(self._trainer.pid)
        self._socket.close()
        self._trainer.terminate()
        self._trainer.wait()
        return {
            "updates": self._updates,
            "used": self._updates * _ROLLOUT,
            "recorded": 1.0,
            "bytes_per_decision": self._sent / max(1, self._steps),
            "bytes_per_update": self._received / self._updates if self._updates else None,
            "trainer_cpu": self._trainer_cpu,
        }

    def _record(self, observation: Any, *, terminated: bool = False, truncated: bool = False) -> None:
        assert self._pending is not None
        reward, self._reward = self._reward, 0.0
        self._episodes[-1].add_env_step(
            observation=observation, reward=reward, terminated=terminated, truncated=truncated, **self._pending
        )
        self._steps += 1
        if self._steps % _ROLLOUT == 0:
            self._exchange()

    def _exchange(self) -> None:
        """Send what was collected, and wait for the next weights."""
        states = [episode.get_state() for episode in self._episodes]
        self._sent += len(pickle.dumps(states))
        reply = self._ask(RLlink.EPISODES_AND_GET_STATE, episodes=states, timesteps=_ROLLOUT)
        self._received += len(pickle.dumps(reply))
        self._take(reply)
        self._updates += 1
        last = self._episodes[-1]
        self._episodes = [] if last.is_done else [last.cut()]

    def _take(self, body: dict[str, Any]) -> None:
        self._module.set_state(body["state"][COMPONENT_RL_MODULE])

    def _ask(self, kind: RLlink, **body: Any) -> dict[str, Any]:
        send_rllink_message(self._socket, {"type": kind.name, **body})
        return dict(get_rllink_message(self._socket)[1])

    def _connected(self, port: int) -> socket.socket:
        deadline = time.monotonic() + _LONGEST_START
        while True:
            try:
                return socket.create_connection(("localhost", port))
            except ConnectionRefusedError:
                if self._trainer.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return int(listening.getsockname()[1])

"""A client process: `python learning_client.py SERVER DIRECTORY VERSION` acts until it has that version."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic

import numpy as np

import rl4sys


def main(server: str, directory: Path, version: int) -> None:
    settings = {
        "client_id": "audited",
        "server": server,
        "observation": 8,
        "action": 4,
        "timeout": 60,
        "send_interval": 0.0,
        "outbox": str(directory / "outbox"),
        "cache": str(directory / "cache"),
        "algorithm": {"name": "ppo", "epochs": 1, "minibatch_size": 32},
        "buffer": {"size": 64},
        "network": {"actor": {"hidden_dims": [8]}, "critic": {"hidden_dims": [8]}},
    }
    with rl4sys.connect(settings) as agent:
        deadline = monotonic() + 60.0
        while (agent.health().version or 0) < version:
            if monotonic() > deadline:
                raise TimeoutError(f"{agent.health()}")
            with agent.episode() as episode:
                for _ in range(20):
                    episode.act(np.ones(8, np.float32))
                    episode.reward(1.0)
                episode.end(np.zeros(8, np.float32))
            if not agent.flush(30.0):
                raise TimeoutError(f"{agent.health()}")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))

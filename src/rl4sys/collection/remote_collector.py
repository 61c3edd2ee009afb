"""Collects rollouts on another machine: a share of the lanes, asked for one rollout at a time."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.checkpoints import decode_state, encode_state
from rl4sys.collection.collector import Collector
from rl4sys.collection.rollout import Rollout
from rl4sys.config import load_plugins, use_copies
from rl4sys.config.plugin_copies import write_copies
from rl4sys.environments import ENVIRONMENTS, Grade
from rl4sys.policy import PolicySpec
from rl4sys.seeding import Seeds


class RemoteCollector:
    """Environments and a policy. What goes in and comes out is JSON and bytes.

    Each rollout comes with the state after it, so that another sampler can take over at any moment.
    """

    def __init__(self, setup: str, plugins: str) -> None:
        """`setup` is the message of a `PipelineSetup`, and `plugins` has the text of each plug-in file by its path."""
        values = json.loads(setup)
        with tempfile.TemporaryDirectory(prefix="rl4sys-sampler-") as directory:
            use_copies(write_copies(Path(directory), json.loads(plugins)))
            load_plugins(values["plugins"], relative_to=Path(values["directory"]))
        ENVIRONMENTS.load_entry_points("rl4sys.environments")
        spec = PolicySpec.from_json(values["policy"])
        environment = ENVIRONMENTS.parse(values["environment"])
        lanes = environment.lanes(Seeds(values["seed"]), environment.num_envs, Grade[values["grade"]])
        self._collector = Collector(lanes, spec, values["client"], values["noise_seed"], values["kernels"])
        self._rollout = Rollout.allocate(Rollout.specs(spec, environment.num_envs, values["steps"]))

    def collect(self, version: int, weights: bytes) -> tuple[bytes, bytes]:
        """Act with some weights for one rollout; returns it with the episodes that ended, and the state after it."""
        self._collector.load(np.frombuffer(weights, np.float32))
        self._collector.fill(self._rollout, version)
        found: dict[str, Any] = {
            "columns": dict(self._rollout.columns),
            "episodes": [episode.to_fields() for episode in self._collector.episodes()],
        }
        # Apart, because the learner keeps it as it is.
        return encode_state(found), self.state()

    def state(self) -> bytes:
        """Where every lane is."""
        return encode_state({"collector": self._collector.state()})

    def restore(self, state: bytes) -> str:
        """Continue where a state was taken; returns why that is not exact, as a JSON list."""
        return json.dumps(list(self._collector.restore(decode_state(state)["collector"])))

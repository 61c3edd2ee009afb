"""The cost of a learner, computed from its config before anything is allocated, and its comparison with the limits."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from pathlib import Path

from rl4sys.experience import SegmentSchema
from rl4sys.policy import action_array, layout_of
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.learner_config import LearnerConfig, network_ops
from rl4sys.server.workers.learner_limits import LearnerCost, Limit, LimitExceeded

_COPIES = 6
"""Of each weight during an update: itself, its target, its gradient, two moments of Adam and a temporary one."""
_WEIGHT_BYTES = 4


def learner_cost(config: LearnerConfig, setup: LearnerSetup) -> LearnerCost:
    """The weights of actor and critics, or of an algorithm's own networks, and the bytes of a full replay buffer."""
    critics = config.algorithm.work(config.buffer.size).critics
    schema = SegmentSchema(setup.observation, action_array(setup.action))
    replay = config.buffer.cost(schema)
    weights = config.algorithm.own_weights(setup.observation, setup.action)
    if weights is None:
        weights = _weights(config, setup, "actor") + critics * _weights(config, setup, "critic")
    in_memory, on_disk = (0, 0) if replay is None else (replay.memory, replay.disk)
    return LearnerCost(weights, in_memory + on_disk, _COPIES * _WEIGHT_BYTES * weights + in_memory)


def require_within(limits: Mapping[str, Limit], config: LearnerConfig, cost: LearnerCost) -> None:
    """Raise `LimitExceeded` for the first limit that a new learner would exceed."""
    work = config.algorithm.work(config.buffer.size)
    for name, got, what, advice in (
        (
            "weights",
            cost.weights,
            "The networks have weights:",
            "Choose fewer or narrower layers.",
        ),
        ("replay_bytes", cost.replay_bytes, "buffer: a full replay buffer takes bytes:", "Lower buffer.size."),
        ("memory_bytes", cost.memory_bytes, "The learner takes about this many bytes of memory:", "Make it smaller."),
        ("threads", config.threads, "threads: got", "Ask for fewer."),
        ("update_epochs", work.epochs, "algorithm.epochs: got", "Choose fewer."),
        (
            "gradient_steps",
            work.gradient_steps,
            "algorithm: gradient steps for each step of experience:",
            "Choose fewer epochs or updates, or larger minibatches.",
        ),
    ):
        if name in limits:
            limits[name].require(got, what, advice)
    fewest = limits.get("checkpoint_steps")
    if fewest is not None and config.checkpoint_frequency < fewest.most:
        raise LimitExceeded(
            f"checkpoint_frequency: got {config.checkpoint_frequency}; {fewest.key} of this server demands at least "
            f"{fewest.most:g} steps between two checkpoints."
        )


def limit_memory(limit: Limit) -> None:
    """Let allocations of this process fail beyond the limit, instead of taking the memory of the machine."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = int(limit.most) + _allocated()
    resource.setrlimit(resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _allocated() -> int:
    """Bytes that count for RLIMIT_DATA: the private, writable memory of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no line VmData, so the memory of workers cannot be limited.")


def _weights(config: LearnerConfig, setup: LearnerSetup, name: str) -> int:
    return layout_of(network_ops(config, setup, name).program()).size

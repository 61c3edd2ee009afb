"""A minimal client: joins, records synthetic segments, pushes and pulls."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rl4sys.experience import Array, ArraySpec, Ending, Segment, StreamKey
from rl4sys.policy import COMPILERS, ActionSpec, BoxAction, DiscreteAction, PolicySpec
from rl4sys.weights import apply_patch
from rl4sys.wire import (
    SegmentFormat,
    decode_patch,
    decode_policy,
    encode_action,
    encode_segment,
    require_decides,
)
from rl4sys.wire.arrays import encode_array
from rl4sys.wire.calls import Transport
from rl4sys.wire.generated import policy_pb2, training_pb2

TIMEOUT = 60.0
OBSERVATION = (ArraySpec("queue", "float32", (3,)),)
ACTION = DiscreteAction(2)
SMALL = {"network": {"actor": {"hidden_dims": [8]}, "critic": {"hidden_dims": [8]}}}
PPO = ("PPO", SMALL | {"algorithm": {"epochs": 2, "minibatch_size": 16}, "buffer": {"size": 32}, "seed": 5})
RECURRENT_PPO = ("PPO", PPO[1] | {"network": {"actor": {"type": "lstm", "units": 8}}})
REMEMBERING_PPO = ("PPO", PPO[1] | {"network": {"actor": {"type": "gru", "units": 8, "previous_action": True}}})
DQN = (
    "DQN",
    SMALL | {"algorithm": {"learning_starts": 20, "batch_size": 8}, "buffer": {"size": 200}, "seed": 5},
)
RECURRENT_DQN = (
    "DQN",
    {
        "algorithm": {"learning_starts": 20, "batch_size": 8, "sequence_length": 4, "burn_in": 2},
        "network": {"actor": {"type": "lstm", "units": 8}},
        "buffer": {"size": 200},
        "seed": 5,
    },
)
_REPLAYED = SMALL | {"algorithm": {"learning_starts": 20, "batch_size": 8}, "buffer": {"size": 200}, "seed": 5}
SAC, TD3 = ("SAC", _REPLAYED), ("TD3", _REPLAYED)
DDPG = ("DDPG", _REPLAYED | {"algorithm": _REPLAYED["algorithm"] | {"exploration": "ornstein_uhlenbeck"}})
_PARTICLES = {"value_samples": 4, "fixed_particles": 4, "updated_particles": 4}
SQL = ("SQL", _REPLAYED | {"algorithm": _REPLAYED["algorithm"] | _PARTICLES})
DREAMER = (
    "Dreamer",
    {
        "algorithm": {
            "size": "pico",
            "learning_starts": 20,
            "batch_size": 2,
            "sequence_length": 6,
            "updates_per_step": 0.1,
            "horizon": 3,
        },
        "buffer": {"size": 200},
        "seed": 5,
    },
)
PETS = (
    "PETS",
    {
        "algorithm": {
            "learning_starts": 20,
            "batch_size": 8,
            "dynamics": {"hidden_dims": [8], "size": 2},
            "candidates": 8,
            "elites": 2,
            "horizon": 3,
        },
        "buffer": {"size": 200},
        "seed": 5,
    },
)
HEADS = [number for number in policy_pb2.HeadKind.values() if number]


def action_of(method: tuple[str, dict[str, Any]] | None) -> ActionSpec:
    """The action of synthetic clients: two numbers for algorithms that need continuous actions."""
    return BoxAction((-1.0, 0.0), (2.0, 5.0)) if method in (SAC, TD3, DDPG, SQL, PETS, DREAMER) else ACTION


def join_request(
    client: str,
    method: tuple[str, dict[str, Any]] | None = PPO,
    policy_id: str = "",
    observation: Iterable[ArraySpec] = OBSERVATION,
    action: ActionSpec | None = None,
) -> training_pb2.JoinRequest:
    request = training_pb2.JoinRequest(
        protocol=1,
        client=client,
        policy_id=policy_id,
        observation=[encode_array(spec) for spec in observation],
        action=encode_action(action or action_of(method)),
        ops=sorted(COMPILERS),
        heads=HEADS,
        software="test",
    )
    if method is not None:
        request.algorithm.name, request.algorithm.parameters_json = method[0], json.dumps(method[1])
    return request


def synthetic_segment(
    spec: PolicySpec, client: str, sequence: int, steps: int = 8, version: int = 0, seed: int = 0
) -> Segment:
    """The same numbers for the same arguments."""
    rng = np.random.default_rng([seed, sequence, *client.encode()])
    return Segment(
        StreamKey(client, "agent", 0),
        sequence,
        0,
        version,
        Ending.TERMINATED if sequence % 2 else Ending.TRUNCATED,
        {array.name: _made_up_observations(rng, array, steps + 1) for array in spec.observation},
        _made_up_actions(rng, spec.action, steps),
        rng.normal(size=steps).astype(np.float32),
        {array.name: np.full(steps, -0.7, np.float32) for array in spec.noted},
        {memory.name: np.zeros(memory.shape, np.float32) for memory in spec.program.carry},
    )


def _made_up_observations(rng: np.random.Generator, array: ArraySpec, count: int) -> Array:
    if array.dtype == "uint8":
        return rng.integers(0, 256, (count, *array.shape), np.uint8)
    return rng.normal(size=(count, *array.shape)).astype(np.float32)


def _made_up_actions(rng: np.random.Generator, action: ActionSpec, steps: int) -> Array:
    if isinstance(action, BoxAction):
        return rng.uniform(action.low, action.high, (steps, action.size)).astype(np.float32)
    return rng.integers(0, 2, steps)


class ScriptedClient:
    """Pushes segment 0, 1, 2, … of epoch 1, each a function of its number."""

    def __init__(self, transport: Transport, request: training_pb2.JoinRequest, epoch: int = 1) -> None:
        self.transport = transport
        self.name = request.client
        self.epoch = epoch
        self.joined = transport.join(request, TIMEOUT)
        self.spec = decode_policy(self.joined.explore)
        # As a client does: the policy of every algorithm must be able to decide there.
        require_decides(self.spec)
        self.form = SegmentFormat.from_message(self.joined.schema)

    def encoded(self, sequence: int, **changes: Any) -> bytes:
        return encode_segment(self.form, synthetic_segment(self.spec, self.name, sequence, **changes))

    def push(self, sequences: Iterable[int], **changes: Any) -> training_pb2.PushReply:
        return self.push_bytes({sequence: self.encoded(sequence, **changes) for sequence in sequences})

    def push_bytes(self, segments: dict[int, bytes]) -> training_pb2.PushReply:
        pushed = [training_pb2.PushedSegment(sequence=n, segment=data) for n, data in segments.items()]
        request = training_pb2.PushRequest(
            session=self.joined.session, epoch=self.epoch, schema_hash=self.joined.schema_hash, segments=pushed
        )
        return self.transport.push(request, TIMEOUT)

    def weights(self, want: int | None = None) -> Array:
        request = training_pb2.PullRequest(session=self.joined.session, want=want)
        size = sum(int(np.prod(tensor.shape)) for tensor in self.spec.program.tensors)
        patch = decode_patch(self.transport.pull(request, TIMEOUT), size)
        return apply_patch(None, patch, size)


def acknowledged(reply: training_pb2.PushReply) -> list[int]:
    return [n for part in reply.acknowledged for n in range(part.first, part.last + 1)]


def eventually(is_true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until another thread or process makes a condition true."""
    deadline = time.monotonic() + seconds
    pause = 0.002
    while not is_true():
        if time.monotonic() > deadline:
            raise AssertionError(f"it did not come true within {seconds} s")
        time.sleep(pause)
        pause = min(0.05, pause * 1.5)

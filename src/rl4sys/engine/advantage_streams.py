"""The steps of on-policy algorithms in their streams, for networks with memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from rl4sys.engine.advantage_batch import AdvantageBatch, with_advantages
from rl4sys.engine.previous_action import TAKEN
from rl4sys.experience import Sequences
from rl4sys.networks import Network, TensorMap
from rl4sys.policy import ActionSpec, action_vectors


@dataclass(frozen=True, slots=True)
class Streams:
    """What networks with memory are unrolled over: [B, L, …]."""

    observation: TensorMap
    is_first: torch.Tensor
    acted: torch.Tensor
    carry: TensorMap
    """Memory of the policy before the first rows, as it was when they were recorded: [B, …]."""

    def __getitem__(self, streams: slice | torch.Tensor) -> Streams:
        acted = self.acted[streams]
        # Streams may be padded to the length of a longer one that is not among these.
        used = int(acted.any(0).nonzero().max()) + 1
        observation = {name: array[streams, :used] for name, array in self.observation.items()}
        carry = {name: memory[streams] for name, memory in self.carry.items()}
        return Streams(observation, self.is_first[streams, :used], acted[:, :used], carry)


@dataclass(frozen=True, slots=True)
class AdvantageStreams(AdvantageBatch):
    """The same steps in their streams: columns hold those that were acted, stream by stream.

    Streams are the unit of slicing and shuffling, so that memory is recomputed with the present weights from the
    first row of each stream on.
    """

    streams: Streams

    def __len__(self) -> int:
        return len(self.streams.acted)

    @property
    def steps(self) -> int:
        """Steps that were acted, in all streams together."""
        return len(self.action)

    def __getitem__(self, rows: slice | torch.Tensor) -> AdvantageStreams:
        acted = self.streams.acted
        numbers = (acted.flatten().cumsum(0) - 1).view(acted.shape)
        steps = AdvantageBatch.__getitem__(self, numbers[rows][acted[rows]])
        return _in_streams(steps, self.streams[rows])

    def outputs(self, network: Network) -> Any:
        """Unroll a network over the streams; its outputs for all steps that were acted."""
        streams = self.streams
        found = network.unroll(streams.observation, streams.is_first, streams.carry)
        return found[streams.acted] if isinstance(found, torch.Tensor) else tuple(each[streams.acted] for each in found)

    def minibatch_count(self, size: int) -> int:
        """Minibatches in one pass: about `size` steps each, and at least one stream."""
        return min(len(self), max(1, round(self.steps / size)))

    def minibatches(self, size: int, shuffle: np.random.Generator) -> Iterator[AdvantageStreams]:
        """Every stream once, in random order."""
        for streams in np.array_split(shuffle.permutation(len(self)), self.minibatch_count(size)):
            yield self[torch.from_numpy(streams).to(self.action.device)]


def _in_streams(steps: AdvantageBatch, streams: Streams) -> AdvantageStreams:
    action, log_prob, age, advantage, returns, value, weight = steps.columns
    return AdvantageStreams(steps.observation, action, log_prob, age, advantage, returns, value, weight, streams)


def _stream_tensors(batch: Sequences, action: ActionSpec | None, device: torch.device) -> Streams:
    seen = (
        dict(batch.observation)
        if action is None
        else {**batch.observation, TAKEN: action_vectors(action, batch.action)}
    )
    observation, carry = (
        {name: torch.from_numpy(array).to(device) for name, array in arrays.items()} for arrays in (seen, batch.carry)
    )
    is_first, acted = (torch.from_numpy(array).to(device) for array in (batch.is_first, batch.acted))
    return Streams(observation, is_first, acted, carry)


def advantage_streams(
    batch: Sequences, critic: Network, gamma: float, gae_lambda: float, action: ActionSpec | None = None
) -> AdvantageStreams:
    """Unroll the critic once over the whole batch, and compute generalized advantages.

    Clients record the memory of the policy only, so that of the critic starts as zeros in each batch. `action` is given
    where networks read the previous action.
    """
    streams = _stream_tensors(batch, action, critic.optimizer.parameters.flat.device)
    with torch.no_grad():
        values = critic.unroll(streams.observation, streams.is_first, streams.carry)
    return _in_streams(with_advantages(batch, values, gamma, gae_lambda), streams)

"""Builds the buffer of an algorithm, or refuses one that yields what its networks cannot learn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rl4sys.engine.algorithm import SEQUENCES, AlgorithmConfig
from rl4sys.networks import NetworksConfig
from rl4sys.replay import BUFFERS, AnyBuffer, BufferConfig, BufferContext, OnceFresh, Ratio, UnsuitableBuffer


def pace_of(algorithm: AlgorithmConfig, networks: NetworksConfig, buffer_size: int) -> OnceFresh | Ratio:
    """The pace of an algorithm with these networks: a batch of sequences has the steps of a batch of transitions."""
    pace = algorithm.pace(buffer_size)
    if isinstance(pace, Ratio) and algorithm.replays_sequences(networks):
        return replace(pace, batch_size=algorithm.sequence_plan().sequences(pace.batch_size))
    return pace


def drawn_rows(algorithm: AlgorithmConfig, networks: NetworksConfig) -> int:
    """Consecutive steps that are drawn together: those of a transition, or the rows of a sequence."""
    return algorithm.sequence_plan().rows if algorithm.replays_sequences(networks) else algorithm.window


def build_buffer(
    algorithm: AlgorithmConfig,
    networks: NetworksConfig,
    buffer: BufferConfig,
    pace: OnceFresh | Ratio,
    rng: np.random.Generator,
    context: BufferContext,
) -> AnyBuffer:
    """The buffer at a pace of `pace_of`; raises `UnsuitableBuffer` for one that cannot work."""
    is_usual = type(buffer) in map(BUFFERS.type, algorithm.buffers)
    if algorithm.replays_sequences(networks):
        if is_usual:
            raise UnsuitableBuffer(f"Networks with memory learn from sequences: set buffer.type={SEQUENCES}.")
    elif type(buffer) is BUFFERS.type(SEQUENCES) and not is_usual:
        raise UnsuitableBuffer(f"It learns from transitions here: set buffer.type={algorithm.buffers[0]}.")
    return buffer.build(pace, rng, drawn_rows(algorithm, networks), context)

"""Random but plausible experience: streams are interleaved, episodes end, segments get lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from rl4sys.experience import Ending, Segment, Transitions
from rl4sys.replay import PrioritizedBuffer, Ratio, UniformBuffer

from .segments import segment

Replay = UniformBuffer | PrioritizedBuffer


def history(seed: int, segments: int, lanes: int = 3, longest: int = 4) -> Iterator[Segment]:
    """Segments of several streams in a possible order of arrival."""
    rng = np.random.default_rng(seed)
    episode, start = [0] * lanes, [0] * lanes
    for _ in range(segments):
        lane, steps = int(rng.integers(lanes)), int(rng.integers(1, longest + 1))
        ending = Ending(int(rng.choice(3, p=[0.6, 0.2, 0.2])))
        if rng.random() > 0.15:
            yield segment(steps, lane=lane, episode=episode[lane], start=start[lane], ending=ending)
        start[lane] += steps
        if ending is not Ending.CONTINUES:
            episode[lane], start[lane] = episode[lane] + 1, 0


def uniform(capacity: int, n_step: int = 1, batch_size: int = 16, seed: int = 0) -> UniformBuffer:
    return UniformBuffer(capacity, Ratio(0.5, 4, batch_size), np.random.default_rng(seed), n_step)


def prioritized(capacity: int, n_step: int = 1, batch_size: int = 16, seed: int = 0) -> PrioritizedBuffer:
    return PrioritizedBuffer(capacity, Ratio(0.5, 4, batch_size), np.random.default_rng(seed), n_step=n_step)


def learn(buffer: Replay, item: Segment) -> list[Transitions]:
    """Add a segment and annotate the batches, as a learner does; the errors depend only on the batch."""
    buffer.add(item)
    batches = []
    for batch in buffer.due():
        buffer.annotate(batch.ids, {"priority": np.sin(batch.reward.sum(axis=-1, dtype=np.float64)) * batch.span})
        batches.append(batch)
    return batches


def through_json(state: Any) -> Any:
    """A state as it is read from a file: names in another order, arrays copied."""
    if isinstance(state, dict):
        return {name: through_json(state[name]) for name in sorted(state)}
    return state.copy() if isinstance(state, np.ndarray) else json.loads(json.dumps(state))

"""Time to draw 256 of a million transitions, compared with a bare `np.take` of the same columns.

Run `python benchmarks/replay.py`; times are medians in microseconds. With goals, uniform and hindsight draws alternate
and CPU time is measured, so that their ratio depends little on other processes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter_ns, thread_time_ns

import numpy as np

from rl4sys.experience import ArraySpec, Ending, Segment, StreamKey, Transitions
from rl4sys.replay import (
    DistanceReward,
    Hindsight,
    HindsightBuffer,
    OnceFresh,
    PrioritizedBuffer,
    Ratio,
    TrajectoryBuffer,
    UniformBuffer,
)
from rl4sys.replay.columns import Columns
from rl4sys.replay.frame_column import FrameStack
from rl4sys.replay.hindsight import Strategy

BATCH = 256
SEGMENT_STEPS = 10_000
EPISODE_STEPS = 50
"""With goals: the length of the usual robotic tasks."""
STACKED_STEPS = 4_000
GOAL = 3
NEAR = DistanceReward(threshold=0.05)
STRATEGIES: tuple[Strategy, ...] = ("future", "final", "episode")


def episode(number: int, steps: int, features: int, rng: np.random.Generator) -> Segment:
    return Segment(
        stream=StreamKey("benchmark", lane=number % 8),
        episode=number,
        start=0,
        policy_version=0,
        ending=Ending.TERMINATED,
        observation={"state": rng.random((steps + 1, features), np.float32)},
        action=rng.integers(0, 2, steps),
        reward=rng.random(steps, np.float32),
        extras={},
        carry={},
    )


def with_goals(segment: Segment, rng: np.random.Generator) -> Segment:
    rows = segment.steps + 1
    achieved = rng.random((rows, GOAL), np.float32)
    desired = np.broadcast_to(rng.random(GOAL, np.float32), (rows, GOAL)).copy()
    return replace(
        segment,
        observation={"observation": segment.observation["state"], "achieved_goal": achieved, "desired_goal": desired},
        action=rng.random((segment.steps, 4), np.float32),
        reward=NEAR.reward(achieved[1:], desired[1:]),
    )


def median(repeats: int, call: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        begin = perf_counter_ns()
        call()
        times.append(perf_counter_ns() - begin)
    return float(np.median(times)) / 1000


def bare_take(columns: list[np.ndarray], rng: np.random.Generator) -> list[np.ndarray]:
    ids = rng.integers(0, len(columns[0]), BATCH)
    return [np.take(column, ids, axis=0) for column in columns]


def measure(features: int, capacity: int, repeats: int) -> list[float]:
    rng = np.random.default_rng(0)
    pace = Ratio(updates_per_step=1, warmup=0, batch_size=BATCH)
    uniform = UniformBuffer(capacity, pace, rng)
    windows = UniformBuffer(capacity, pace, rng, n_step=3)
    prioritized = PrioritizedBuffer(capacity, pace, rng)
    for number in range(-(-capacity // SEGMENT_STEPS)):
        segment = episode(number, SEGMENT_STEPS, features, rng)
        for buffer in (uniform, windows, prioritized):
            buffer.add(segment)
    for _, batch in zip(range(2000), prioritized.due(), strict=False):
        prioritized.annotate(batch.ids, {"priority": rng.normal(size=BATCH)})

    rows = uniform.rows(uniform.first, uniform.total)
    columns = [rows[name] for name in ("observation/state", "observation/state", "action", "reward", "discount")]
    ids, errors = rng.integers(0, capacity, BATCH), rng.normal(size=BATCH)

    def draw(buffer: UniformBuffer | PrioritizedBuffer) -> Callable[[], Transitions]:
        return buffer.due().__next__

    return [
        median(repeats, lambda: bare_take(columns, rng)),
        median(repeats, draw(uniform)),
        median(repeats, draw(windows)),
        median(repeats, draw(prioritized)),
        median(repeats, lambda: prioritized.annotate(ids, {"priority": errors})),
    ]


def compare_with_goals(features: int, capacity: int, repeats: int) -> list[float]:
    """Microseconds of CPU time of a uniform draw and of one with each strategy."""
    rng = np.random.default_rng(0)
    pace = Ratio(updates_per_step=1, warmup=0, batch_size=BATCH)
    buffers: list[UniformBuffer | HindsightBuffer] = [UniformBuffer(capacity, pace, rng)]
    buffers += [HindsightBuffer(capacity, pace, rng, Hindsight(NEAR, strategy)) for strategy in STRATEGIES]
    for number in range(-(-capacity // EPISODE_STEPS)):
        segment = with_goals(episode(number, EPISODE_STEPS, features, rng), rng)
        for buffer in buffers:
            buffer.add(segment)
    draws = [buffer.due() for buffer in buffers]
    times: list[list[int]] = [[] for _ in draws]
    for _ in range(repeats):
        for draw, taken in zip(draws, times, strict=True):
            begin = thread_time_ns()
            next(draw)
            taken.append(thread_time_ns() - begin)
    return [float(np.median(taken)) / 1000 for taken in times]


def assemble(repeats: int) -> float:
    rng = np.random.default_rng(0)
    segments = [episode(number, 17, 4, rng) for number in range(61)]
    times = []
    for _ in range(repeats):
        buffer = TrajectoryBuffer(OnceFresh(steps=1024, max_age=0))
        for segment in segments:
            buffer.add(segment)
        times.append(median(1, buffer.due().__next__))
    return float(np.median(times))


def draw_stacks(batch: int, repeats: int) -> list[float]:
    """Microseconds of CPU time to draw stacks of 4 grey frames: stored whole, and as frames."""
    rng = np.random.default_rng(0)
    stack = FrameStack(ArraySpec("state", "uint8", (84, 84, 4)), 4)
    whole, frames = (Columns(STACKED_STEPS, stacks=stacks) for stacks in ({}, {"state": stack}))
    for number in range(STACKED_STEPS // 500):
        images = rng.integers(0, 256, (504, 84, 84)).astype(np.uint8)
        images[:3] = images[3]
        shown = np.stack([images[first : first + 501] for first in range(4)], axis=-1)
        segment = replace(episode(number, 500, 1, rng), observation={"state": shown})
        whole.append(segment)
        frames.append(segment)
    times: list[list[int]] = [[], []]
    for _ in range(repeats):
        ids = rng.integers(whole.first, whole.total, batch)
        for columns, taken in zip((whole, frames), times, strict=True):
            begin = thread_time_ns()
            columns.batch(ids, np.ones(batch, np.float32))
            taken.append(thread_time_ns() - begin)
    return [float(np.median(taken)) / 1000 for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--capacity", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=2000)
    arguments = parser.parse_args()
    print(f"{BATCH} of {arguments.capacity:,} transitions, median µs of {arguments.repeats}")
    print(f"{'floats':>6} {'np.take':>9} {'uniform':>9} {'3-step':>9} {'prioritized':>12} {'annotate':>9}")
    for features in (4, 8, 17):
        take, uniform, windows, prioritized, annotate = measure(features, arguments.capacity, arguments.repeats)
        print(f"{features:6} {take:9.1f} {uniform:9.1f} {windows:9.1f} {prioritized:12.1f} {annotate:9.1f}")
    print(f"with goals of {GOAL} floats and episodes of {EPISODE_STEPS} steps, CPU time:")
    print(f"{'floats':>6} {'uniform':>9}" + "".join(f"{strategy:>16}" for strategy in STRATEGIES))
    for features in (10, 25):
        plain, *others = compare_with_goals(features, arguments.capacity, arguments.repeats)
        print(f"{features:6} {plain:9.1f}" + "".join(f"{other:9.1f} {other / plain:5.2f}×" for other in others))
    for batch in (32, 256):
        whole, frames = draw_stacks(batch, repeats=50)
        print(f"{batch} stacks of 84×84×4: stored whole {whole:.0f} µs, as frames {frames:.0f} µs")
    print(f"trajectory batch of 1,037 steps in 61 segments: {assemble(200):.0f} µs")


if __name__ == "__main__":
    main()

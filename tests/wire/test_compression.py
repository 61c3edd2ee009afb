"""Pushes as zstd frames: smaller, equal to what was recorded, and bounded."""

from __future__ import annotations

import numpy as np
import pytest

from rl4sys.experience import Array, ArraySpec, Ending, Segment, SegmentSchema, StreamKey
from rl4sys.policy import CANDIDATES, COUNT, candidate_arrays
from rl4sys.wire import SegmentFormat, encode_segment
from rl4sys.wire.compression import compress_push, decompress_push, uncompressed_bytes
from rl4sys.wire.generated import training_pb2

STEPS, MOST, JOBS, FEATURES = 256, 128, 20, 8


def pushed(*segments: bytes) -> training_pb2.PushRequest:
    each = [training_pb2.PushedSegment(sequence=i, segment=one) for i, one in enumerate(segments)]
    return training_pb2.PushRequest(segments=each)


def queue_of_jobs() -> dict[str, Array]:
    """20 jobs wait. In every step one is started and another one comes; what is known of a job does not change, but
    for how long it has waited."""
    rng = np.random.default_rng(0)
    jobs = [rng.random(FEATURES).astype(np.float32) for _ in range(JOBS)]
    rows, count = np.zeros((STEPS + 1, MOST, FEATURES), np.float32), np.full((STEPS + 1, 1), JOBS, np.float32)
    for step in range(STEPS + 1):
        rows[step, :JOBS] = jobs
        jobs.pop(int(rng.integers(JOBS)))
        jobs.append(rng.random(FEATURES).astype(np.float32))
        for job in jobs:
            job[0] = np.float32(round(float(job[0]) + 1 / 64, 4))
    return {CANDIDATES: rows, COUNT: count}


def encoded(observation: dict[str, Array], specs: tuple[ArraySpec, ...], choices: int) -> bytes:
    rng = np.random.default_rng(1)
    log_prob = {"log_prob": rng.normal(size=STEPS).astype(np.float32)}
    action, reward = rng.integers(choices, size=STEPS), rng.normal(size=STEPS).astype(np.float32)
    schema = SegmentSchema(specs, ArraySpec("action", "int64", ()), (ArraySpec("log_prob", "float32", ()),))
    segment = Segment(StreamKey("a"), 0, 0, 0, Ending.TERMINATED, observation, action, reward, log_prob, {})
    return encode_segment(SegmentFormat(schema, (choices,)), segment)


def test_candidates_take_at_most_250_bytes_per_step() -> None:
    request = pushed(encoded(queue_of_jobs(), candidate_arrays(MOST, FEATURES), MOST))
    assert uncompressed_bytes(request) > 4_000 * STEPS
    compress_push(request)
    assert request.ByteSize() <= 250 * STEPS


def test_eight_numbers_and_four_choices_take_at_most_42_bytes_per_step() -> None:
    observation = np.random.default_rng(0).normal(size=(STEPS + 1, 8)).astype(np.float32)
    specs = (ArraySpec("observation", "float32", (8,)),)
    request = pushed(encoded({"observation": observation}, specs, 4))
    compress_push(request)
    assert request.ByteSize() <= 42 * STEPS


def test_frames_are_only_sent_where_they_are_smaller_and_give_back_what_was_recorded() -> None:
    noise, zeros = np.random.default_rng(0).bytes(1000), bytes(1000)
    request = pushed(noise, zeros, b"short")
    compress_push(request)
    assert [one.uncompressed_bytes for one in request.segments] == [0, 1000, 0]
    decompress_push(request)
    assert request == pushed(noise, zeros, b"short")


@pytest.mark.parametrize("claimed", [999, 1001, 4_000_000_000])
def test_a_frame_of_another_size_stays_as_it_is(claimed: int) -> None:
    request = pushed(bytes(1000))
    compress_push(request)
    request.segments[0].uncompressed_bytes = claimed
    frame = request.segments[0].segment
    decompress_push(request)
    assert request.segments[0].segment == frame

import numpy as np
import pytest
from tests.native import needs_native

from rl4sys.experience import Array, StreamKey
from rl4sys.policy import KeyedNoise, StreamNoise, native_extension, noise_rows
from rl4sys.policy.noise import normal, stream_key

STREAMS = [StreamKey("client", lane=lane) for lane in range(3)]


def many(size: int = 2) -> Array:
    """[100,000, size]"""
    streams = [StreamKey("many", lane=lane) for lane in range(100)]
    noise = KeyedNoise(7, streams, size)
    return np.concatenate([noise.at(step) for step in range(1000)])


def test_noise_does_not_depend_on_the_order_of_steps() -> None:
    steps = [0, 1, 700, 3, 255, 256, 2**33, 0, 511]
    forward = KeyedNoise(5, STREAMS, 6)
    expected = {step: forward.at(step).copy() for step in sorted(set(steps))}
    jumping = KeyedNoise(5, STREAMS, 6)
    for step in steps:
        np.testing.assert_array_equal(jumping.at(step), expected[step])


def test_noise_of_a_stream_does_not_depend_on_other_streams() -> None:
    alone, together = KeyedNoise(5, STREAMS[2:], 3), KeyedNoise(5, STREAMS, 3)
    np.testing.assert_array_equal(alone.at(9)[0], together.at(9)[2])


def test_a_larger_noise_size_keeps_the_first_numbers() -> None:
    few, more = KeyedNoise(5, STREAMS, 3), KeyedNoise(5, STREAMS, 11)
    np.testing.assert_array_equal(few.at(4), more.at(4)[:, :3])


def test_seeds_clients_agents_and_lanes_all_make_streams_differ() -> None:
    streams = [StreamKey("a"), StreamKey("b"), StreamKey("a", "other"), StreamKey("a", lane=1)]
    keys = {stream_key(seed, stream) for seed in (0, 1) for stream in streams}
    assert len(keys) == 8


def test_a_slash_in_a_name_does_not_make_two_streams_one() -> None:
    assert stream_key(0, StreamKey("rack/3", "disk")) != stream_key(0, StreamKey("rack", "3/disk"))


def test_the_numbers_of_neighbouring_lanes_and_steps_are_not_correlated() -> None:
    noise = KeyedNoise(1, [StreamKey("c", lane=lane) for lane in range(2)], 1)
    numbers = np.stack([noise.at(step)[:, 0] for step in range(4000)])
    series = np.stack([numbers[:-1, 0], numbers[1:, 0], numbers[:-1, 1]])
    correlation = np.corrcoef(series) - np.eye(3)
    assert np.abs(correlation).max() < 0.06


def test_uniform_numbers_are_fractions_of_24_bits_below_one() -> None:
    numbers = many()
    assert numbers.dtype == np.float32
    assert ((numbers * 2**24) % 1 == 0).all()
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = np.histogram(numbers, bins=20, range=(0, 1))[0]
    np.testing.assert_allclose(counts, numbers.size / 20, rtol=0.05)


def test_normal_numbers_have_the_moments_of_a_normal_distribution() -> None:
    numbers = normal(many()).astype(np.float64)
    moments = [(numbers**power).mean() for power in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.06)


def test_the_extremes_of_uniform_numbers_give_finite_normal_numbers() -> None:
    edges = np.array([[0.0, 0.0], [1 - 2**-24, 0.0], [1 - 2**-24, 0.5]], np.float32)
    numbers = normal(edges)[:, 0]
    assert numbers[0] == 0
    np.testing.assert_allclose(numbers[1:], [5.768, -5.768], atol=1e-3)


def test_a_deterministic_policy_takes_empty_noise() -> None:
    assert KeyedNoise(0, STREAMS, 0).at(3).shape == (3, 0)


def test_very_many_streams_are_not_drawn_far_ahead() -> None:
    noise = KeyedNoise(0, [StreamKey("c", lane=lane) for lane in range(5000)], 1)
    assert noise.at(0).base.nbytes < 100_000
    np.testing.assert_array_equal(noise.at(3)[4999], KeyedNoise(0, [StreamKey("c", lane=4999)], 1).at(3)[0])


def test_noise_is_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        KeyedNoise(0, STREAMS, 2).at(0)[0] = 0.5


@pytest.mark.parametrize("size", [0, 1, 6])
@pytest.mark.parametrize("runtime", ["numpy", pytest.param("native", marks=needs_native)])
def test_noise_of_many_streams_is_that_of_each(runtime: str, size: int) -> None:
    streams = [StreamNoise(5, StreamKey("many", "agent", lane), size) for lane in range(70)]
    keys, steps = [stream.key for stream in streams], [lane + (lane << 40) for lane in range(70)]
    rows = np.full((70, size), 9.0, np.float32)
    if runtime == "native":
        native_extension().noise_rows(keys, steps, rows)
    else:
        rows = noise_rows(keys, steps, size)
    expected = np.concatenate([stream.at(step) for stream, step in zip(streams, steps, strict=True)])
    np.testing.assert_array_equal(rows, expected)

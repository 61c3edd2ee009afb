import numpy as np
import pytest

from rl4sys.experience import Ending, Segment, StreamKey

from .segments import segment


def test_a_segment_follows_the_one_it_continues() -> None:
    assert segment(start=5).follows(segment(start=2, ending=Ending.CONTINUES))


@pytest.mark.parametrize(
    "earlier",
    [
        segment(start=1, ending=Ending.CONTINUES),
        segment(start=2, ending=Ending.TRUNCATED),
        segment(start=2, ending=Ending.TERMINATED),
        segment(start=2, ending=Ending.CONTINUES, episode=3),
        segment(start=2, ending=Ending.CONTINUES, stream=StreamKey("client", lane=1)),
    ],
    ids=["gap", "truncated", "terminated", "other episode", "other lane"],
)
def test_a_segment_follows_no_other(earlier: Segment) -> None:
    assert not segment(start=5).follows(earlier)


@pytest.mark.parametrize(
    ("ending", "expected"),
    [(Ending.CONTINUES, [1, 1, 1]), (Ending.TRUNCATED, [1, 1, 1]), (Ending.TERMINATED, [1, 1, 0])],
)
def test_only_termination_sets_the_discount_to_zero(ending: Ending, expected: list[int]) -> None:
    discount = segment(ending=ending).discount()
    assert discount.tolist() == expected
    assert discount.dtype == np.float32


def test_an_ending_read_as_a_number_is_understood() -> None:
    assert segment(ending=1).discount().tolist() == [1, 1, 0]
    assert segment(start=3).follows(segment(ending=0))

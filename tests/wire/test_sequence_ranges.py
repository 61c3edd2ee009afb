from hypothesis import given
from hypothesis import strategies as st

from rl4sys.wire import covered, to_ranges
from rl4sys.wire.generated import training_pb2


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_ranges_contain_exactly_their_numbers(stored: set[int], outstanding: set[int]) -> None:
    assert covered(to_ranges(stored), outstanding) == stored & outstanding


def test_consecutive_numbers_share_a_range() -> None:
    assert [(part.first, part.last) for part in to_ranges([7, 3, 5, 4, 3])] == [(3, 5), (7, 7)]


def test_an_enormous_range_is_not_expanded() -> None:
    everything = training_pb2.SequenceRange(first=0, last=2**64 - 1)
    assert covered([everything], [1, 2**62]) == {1, 2**62}

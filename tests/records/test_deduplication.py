from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rl4sys.records import Deduplication

KEYS = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 2), st.integers(0, 30))


@given(st.lists(KEYS, max_size=120))
def test_deduplication_agrees_with_a_set(keys: list[tuple[str, int, int]]) -> None:
    seen: set[tuple[str, int, int]] = set()
    deduplication = Deduplication()
    for key in keys:
        assert (key in deduplication) == (key in seen)
        assert deduplication.add(*key) == (key not in seen)
        seen.add(key)
    assert all((client, epoch, n) in deduplication for client, epoch, n in seen)
    assert sum((c, e, n) in deduplication for c in "ab" for e in range(3) for n in range(-1, 32)) == len(seen)


@given(st.lists(KEYS, max_size=120), st.lists(KEYS, max_size=20))
def test_a_restored_deduplication_continues_like_the_original(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]]
) -> None:
    original, restored = Deduplication(), Deduplication()
    for key in before:
        original.add(*key)
    restored.restore(json.loads(json.dumps(original.state())))
    assert [original.add(*key) for key in after] == [restored.add(*key) for key in after]
    assert original.state() == restored.state()


@given(st.permutations(range(40)))
def test_numbers_without_gaps_form_one_range_in_any_order(sequences: list[int]) -> None:
    deduplication = Deduplication()
    for sequence in sequences:
        deduplication.add("a", 7, sequence)
    assert deduplication.state() == {"seen": [["a", 7, 0, 40]]}


@pytest.mark.parametrize("bounds", [[0], [3, 3], [5, 2], [0, 4, 4, 6]])
def test_a_damaged_state_is_refused(bounds: list[int]) -> None:
    with pytest.raises(ValueError, match="Rebuild the deduplication from the log"):
        Deduplication().restore({"seen": [["a", 1, *bounds]]})

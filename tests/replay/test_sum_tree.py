from __future__ import annotations

import numpy as np
import pytest

from rl4sys.replay.sum_tree import SumTree


@pytest.mark.parametrize("size", [1, 31, 33, 1024, 1025, 40_000])
def test_a_tree_rebuilt_from_its_leaves_is_the_same_to_the_bit(size: int) -> None:
    rng = np.random.default_rng(0)
    tree, rebuilt = SumTree(size), SumTree(size)
    for _ in range(50):
        first, last = np.sort(rng.integers(0, size + 1, 2))
        if first < last:
            tree.fill(slice(first, last), float(rng.random() * 1e6))
        leaves = rng.integers(0, size, 64)
        tree.put(leaves, rng.random(64) ** 8)
    rebuilt.fill(slice(0, size), tree.values(slice(0, size)))
    for level, other in zip(tree._levels, rebuilt._levels, strict=True):
        assert level.tobytes() == other.tobytes()


@pytest.mark.parametrize("size", [1, 40, 3000, 70_000])
def test_a_leaf_is_found_at_its_share_of_the_total(size: int) -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 5, size).astype(np.float64) + (np.arange(size) == size // 2)
    tree = SumTree(size)
    tree.fill(slice(0, size), values)
    shares = rng.random(500)
    expected = np.searchsorted(values.cumsum(), shares * values.sum(), side="right")
    np.testing.assert_array_equal(tree.find(shares), expected)


@pytest.mark.parametrize("size", [50, 5000])
def test_leaves_of_value_zero_are_never_found(size: int) -> None:
    rng = np.random.default_rng(2)
    values = rng.random(size) * 10.0 ** rng.integers(-12, 12, size) * (rng.random(size) < 0.1)
    tree = SumTree(size)
    tree.fill(slice(0, size), values)
    shares = np.concatenate([[0.0, 1.0], rng.random(2000), 1 - rng.random(2000) * 1e-12])
    assert (values[tree.find(shares)] > 0).all()


def test_rounding_at_the_edge_of_a_node_finds_no_leaf_of_value_zero() -> None:
    values = np.random.default_rng(3).random(64_000)
    values[::32] = values[31::32] = 0.0
    tree = SumTree(len(values))
    tree.fill(slice(0, len(values)), values)
    edges = values.reshape(-1, 32).sum(axis=1).cumsum() / values.sum()
    shares = np.concatenate([edges, np.nextafter(edges, 0), edges * (1 - 1e-15)])
    assert (values[tree.find(shares)] > 0).all()

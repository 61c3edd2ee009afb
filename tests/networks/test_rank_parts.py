"""Ranks compute their parts of a batch apart, and the sum is that of one process that computes all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
import torch

from rl4sys.networks import NoiseStream, RankParts

Found = tuple[torch.Tensor, ...]


class Ranks:
    """Threads that exchange tensors as processes do."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.barrier = threading.Barrier(count, timeout=30)
        self.tensors: dict[int, torch.Tensor] = {}

    def run(self, work: Callable[[RankParts], Found]) -> list[Found]:
        """The results of the same work on every rank."""
        results: dict[int, Found] = {}

        def rank(number: int) -> None:
            parts = RankParts(noise())
            parts.take(self.count, OneRank(self, number))
            results[number] = work(parts)

        threads = [threading.Thread(target=rank, args=(number,)) for number in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        return [results[number] for number in range(self.count)]


class OneRank:
    """How one of the threads exchanges tensors."""

    def __init__(self, ranks: Ranks, rank: int) -> None:
        self._ranks, self.rank = ranks, rank

    def gather(self, mine: torch.Tensor, everyone: torch.Tensor) -> None:
        self._ranks.tensors[self.rank] = mine.clone()
        self._ranks.barrier.wait()
        for rank in range(self._ranks.count):
            everyone[rank] = self._ranks.tensors[rank]
        self._ranks.barrier.wait()


def noise() -> NoiseStream:
    return NoiseStream(torch.Generator().manual_seed(7))


def summed(parts: RankParts, rows: int) -> Found:
    """Two updates of rows whose sum depends on its order."""
    gradient = torch.zeros(5)
    values = torch.randn(rows, 5, generator=torch.Generator().manual_seed(1)) * 10.0 ** torch.arange(-3.0, 2.0)

    def compute(part: slice) -> Found:
        gradient.copy_(values[part].sum(0) / 3.0)
        return values[part].mean() * 0.1, values[part].T.contiguous()

    parts.summed(rows, compute, gradient)
    return (*parts.summed(rows, compute, gradient), gradient)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("rows", [1, 2, 10, 17])
def test_all_ranks_get_the_sum_of_one_process(count: int, rows: int) -> None:
    alone = RankParts(noise())
    alone.take(count, None)
    expected = summed(alone, rows)
    for found in Ranks(count).run(lambda parts: summed(parts, rows)):
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_noise_does_not_depend_on_where_a_part_is_computed() -> None:
    def drawn(parts: RankParts) -> Found:
        stream, gradient = parts._noise, torch.zeros(1)

        def compute(part: slice) -> Found:
            return (torch.randn(part.stop - part.start, generator=stream.generator),)

        twice = [parts.summed(5, compute, gradient)[0] for _ in range(2)]
        return (*twice, torch.randn(3, generator=stream.generator))

    alone = RankParts(noise())
    alone.take(3, None)
    expected = drawn(alone)
    assert not torch.equal(expected[0], expected[1])
    for found in Ranks(3).run(drawn):
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def test_a_part_without_noise_leaves_the_generator_as_it_is() -> None:
    stream = noise()
    parts = RankParts(stream)
    parts.take(2, None)
    parts.summed(4, lambda part: (torch.zeros(()),), torch.zeros(1))
    assert torch.equal(stream.main.get_state(), noise().main.get_state())


def test_what_is_small_is_computed_by_every_rank_without_an_exchange() -> None:
    class NoExchange:
        rank = 0

        def gather(self, mine: torch.Tensor, everyone: torch.Tensor) -> None:
            raise AssertionError("Nothing had to be exchanged.")

    parts = RankParts(noise())
    parts.take(2, NoExchange())
    (found,) = parts.summed(4, lambda part: (torch.ones(part.stop - part.start),), torch.zeros(1), is_small=True)
    assert found.tolist() == [1.0] * 4


def test_a_rank_that_is_short_of_memory_makes_all_split_their_parts() -> None:
    def split(parts: RankParts) -> Found:
        parts.local_parts = 4 if parts._rank == 1 else 1
        parts.summed(4, lambda part: (torch.zeros(()),), torch.zeros(1))
        return (torch.tensor(parts.local_parts),)

    assert [int(found[0]) for found in Ranks(2).run(split)] == [4, 4]


def test_networks_are_evaluated_together_only_within_an_update() -> None:
    parts = RankParts(noise())
    parts.take(2, None)
    assert not parts.evaluates_together
    with parts.updating():
        assert parts.evaluates_together
        parts.summed(2, lambda part: (torch.tensor(float(parts.evaluates_together)),), torch.zeros(1))
    rows = torch.arange(5.0)
    assert torch.equal(parts.evaluated(5, lambda part: (rows[part, None],), 0)[0], rows[:, None])


def test_results_of_other_types_are_refused() -> None:
    parts = RankParts(noise())
    parts.take(1, OneRank(Ranks(1), 0))
    with pytest.raises(TypeError, match="return float32"):
        parts.summed(2, lambda part: (torch.zeros((), dtype=torch.int64),), torch.zeros(1))

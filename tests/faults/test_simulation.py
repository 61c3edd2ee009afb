"""The protocol with simulated failures. A seed that fails prints how to repeat it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.faults.simulation import simulate
from tests.storms import scaled

BLOCKS = 4


@pytest.mark.slow
@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_seed_loses_repeats_or_changes_anything(block: int, tally: Callable[[str, int], None]) -> None:
    seeds = range(block, scaled(500, 100_000), BLOCKS)
    tally("seeded simulations of the protocol", len(seeds))
    detected = stored = versions = 0
    for seed in seeds:
        simulation = simulate(seed)
        detected += simulation.server.detected
        stored += len(simulation.server.trained)
        versions += simulation.server.store.latest
    # A simulation in which nothing happens would pass too.
    assert stored > 5 * len(seeds)
    assert versions > len(seeds)
    assert len(seeds) < 100 or detected > len(seeds) / 10

"""`rl4sys.utils.step_statistic`: mean and deviation of measured values."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping


def compute_field_statistics(summaries: Iterable[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    """The mean and the standard deviation (of the population) of each value, by its name."""
    values = defaultdict(list)
    for summary in summaries:
        for name, value in summary.items():
            values[name].append(float(value))
    return {name: (statistics.fmean(found), statistics.pstdev(found)) for name, found in values.items()}

"""Jobs per CPU second of the simulated batch system, by protocol, for SJF on a generated workload.

Run `python benchmarks/scheduling.py`.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from rl4sys.environments.scheduling import PROTOCOLS, generate, schedule_by

JOBS, LENGTH, PROCESSORS, REPEATS = 20_480, 1024, 256, 5


def main() -> None:
    jobs = generate(JOBS, PROCESSORS, np.random.default_rng(0))
    sequences = [jobs.span(first, LENGTH) for first in range(0, JOBS, LENGTH)]
    for protocol in PROTOCOLS:
        rates = []
        for _ in range(REPEATS):
            begin = process_time()
            for each in sequences:
                schedule_by("sjf", each, protocol)
            rates.append(JOBS / (process_time() - begin))
        print(f"sjf, {protocol:9} {np.median(rates):10,.0f} jobs per CPU second   (lowest {min(rates):,.0f})")


if __name__ == "__main__":
    main()

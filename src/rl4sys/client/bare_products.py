"""The least that a decision can cost with numpy: the matrix products of its policy, and nothing else."""

from __future__ import annotations

from time import perf_counter_ns

import numpy as np

from rl4sys.client.snapshot import Snapshot

_REPEATS = 1_000


def bare_products(snapshot: Snapshot | None) -> int | None:
    """The nanoseconds of the products of a row with all matrices; None for a policy on the server."""
    if snapshot is None or not snapshot.interface.is_local:
        return None
    matrices = [
        np.ones(tensor.shape, np.float32)
        for tensor in snapshot.interface.policies.acting.program.tensors
        if len(tensor.shape) == 2
    ]
    rows = [np.ones((1, len(matrix)), np.float32) for matrix in matrices]
    outs = [np.empty((1, matrix.shape[1]), np.float32) for matrix in matrices]
    times = []
    for _ in range(_REPEATS):
        began = perf_counter_ns()
        for row, matrix, out in zip(rows, matrices, outs, strict=True):
            np.dot(row, matrix, out)
        times.append(perf_counter_ns() - began)
    # The fastest hundredth: other threads of the system take turns with this one.
    return sorted(times)[_REPEATS // 100]

"""The number of threads that torch and numpy compute with."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from threadpoolctl import ThreadpoolController

from rl4sys.cores import usable_cores
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.networks import from_spec, orthogonal
from rl4sys.policy import PolicySpec
from rl4sys.replay import Ratio

_WORTH_IT = 1.1
"""More threads must be this much faster: when another process wants the core, they become far slower."""
_WORTH_SPLITTING = 4_000_000
"""Multiplications per pass below which threads gain little even on a free machine, and so are not tried."""
_REPEATS = 10
_IN_A_ROW = 8


def measure_threads(spec: PolicySpec, batch_size: int, *, cores: int) -> int:
    """The number of torch threads that trains a network like this one fastest, found by trying."""
    network, parameters = from_spec(spec)
    if cores < 2 or batch_size * parameters.layout.size < _WORTH_SPLITTING:
        return 1
    before = torch.get_num_threads()
    try:
        orthogonal(parameters, {}, torch.Generator().manual_seed(0))
        rows = {
            array.name: torch.zeros(batch_size, *array.shape, dtype=getattr(torch, array.dtype))
            for array in spec.observation
        }
        output = spec.head.inputs[0]

        def update() -> None:
            network(rows)[output].square().mean().backward()

        seconds = dict.fromkeys((1, cores), 0.0)
        for _ in range(_REPEATS):
            for threads in seconds:
                # In turns, and summed rather than the median: what else runs here must count against more threads.
                seconds[threads] += _seconds(update, threads)
        return cores if seconds[cores] * _WORTH_IT < seconds[1] else 1
    finally:
        torch.set_num_threads(before)


def threads_for(config: ExperimentConfig, policy: PolicySpec, processes: int = 1) -> int:
    """The threads that a config asks for, or those that suit its policy best where processes share the cores."""
    if config.experiment.threads is not None:
        return config.experiment.threads
    training = config.training
    # Who learns from replay waits for updates, not for experience: its collectors are idle most of the time.
    waits = isinstance(config.algorithm.pace(config.buffer.size), Ratio)
    collectors = training.collectors if training.pipelined and not waits else 0
    cores = max(1, len(usable_cores()) // processes - collectors)
    return measure_threads(policy, config.algorithm.update_size(), cores=cores)


def act_with_one_thread() -> None:
    """Let numpy multiply matrices with one thread in this process.

    Acting multiplies small ones, which more threads only slow down; and another number would change the bits.
    """
    ThreadpoolController().select(internal_api="openblas").limit(limits=1)


def _seconds(update: Callable[[], None], threads: int) -> float:
    torch.set_num_threads(threads)
    # The first call after a change wakes the threads up.
    update()
    start = time.perf_counter()
    for _ in range(_IN_A_ROW):
        update()
    return time.perf_counter() - start

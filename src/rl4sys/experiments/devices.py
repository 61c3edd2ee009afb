"""Where to compute, and with how many threads."""

from __future__ import annotations

import logging
import os
import statistics
import time
from collections.abc import Callable

import torch

from rl4sys.networks import from_spec, orthogonal
from rl4sys.policy import PolicySpec

_log = logging.getLogger(__name__)

_WORTH_IT = 1.15
"""More threads must be this much faster: when another process wants the core, they become far slower."""
_REPEATS = 15


class DeviceUnavailable(RuntimeError):
    """The device that was asked for is not there."""


def choose_device(wanted: str, *, allow_fallback: bool = False) -> torch.device:
    """The device to compute on; `auto` takes a GPU if there is one."""
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError as error:
        raise DeviceUnavailable(f"device '{wanted}' is not a device; use auto, cpu, cuda or cuda:1.") from error
    if device.type == "cuda" and not torch.cuda.is_available():
        if not allow_fallback:
            raise DeviceUnavailable(
                f"device '{wanted}' was asked for, but torch sees no CUDA GPU here. "
                f"Go on with device=auto (or --allow-fallback), or install a CUDA build of torch."
            )
        _log.warning("No CUDA GPU here: computing on the CPU instead of '%s'.", wanted)
        return torch.device("cpu")
    return device


def measure_threads(spec: PolicySpec, batch_size: int, *, cores: int) -> int:
    """The number of torch threads that trains a network like this one fastest, found by trying."""
    if cores < 2:
        return 1
    before = torch.get_num_threads()
    try:
        network, parameters = from_spec(spec)
        orthogonal(parameters, {}, torch.Generator().manual_seed(0))
        rows = {
            array.name: torch.zeros(batch_size, *array.shape, dtype=getattr(torch, array.dtype))
            for array in spec.observation
        }
        output = spec.head.inputs[0]

        def update() -> None:
            network(rows)[output].square().mean().backward()

        seconds = {threads: _median_seconds(update, threads) for threads in (1, cores)}
        return cores if seconds[cores] * _WORTH_IT < seconds[1] else 1
    finally:
        torch.set_num_threads(before)


def usable_cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _median_seconds(update: Callable[[], None], threads: int) -> float:
    torch.set_num_threads(threads)
    seconds = []
    for _ in range(_REPEATS):
        start = time.perf_counter()
        update()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService

THREADS = ServiceOptions(workers="threads", restart_seconds=0.01)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Local learners compute with one thread, as workers do by default: another number changes the last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., InProcessTransport]]:
    """Starts services over the same data directory, each after the last one was drained."""
    services: list[TrainingService] = []

    def start(options: ServiceOptions = THREADS) -> InProcessTransport:
        for earlier in services:
            earlier.drain()
        services.append(TrainingService(tmp_path / "data", options))
        return InProcessTransport(services[-1])

    yield start
    for service in services:
        service.drain()

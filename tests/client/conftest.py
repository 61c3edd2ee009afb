from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.client.waiting import until


@pytest.fixture(autouse=True)
def no_threads_left_behind() -> Iterator[None]:
    yield
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("rl4sys-")], 5.0)

"""A data directory of a server of version 0.1: one ppo learner at version 6, after 20 records of 50 steps."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.clients import eventually

from rl4sys.server import InProcessTransport
from rl4sys.wire.generated import status_pb2


def test_its_learner_continues_and_warns_that_this_is_not_exact(
    serve: Callable[..., InProcessTransport], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with tarfile.open(Path(__file__).parent / "data_of_0_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    transport = serve()
    request = status_pb2.StatusRequest(learner="c-ppo")
    eventually(lambda: transport.status(request, 5.0).learners[0].version == 6)
    message = "Learner c-ppo was saved by a version before 0.2: it continues, but not bit for bit."
    assert caplog.messages.count(message) == 1

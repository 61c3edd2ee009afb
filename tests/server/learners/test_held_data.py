"""Damaged and shortened logs: harmless below a sound checkpoint, and otherwise held until an operator decides."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import PPO, ScriptedClient, join_request
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.records import DiskFiles, RecordLog, RecordReader
from rl4sys.records.recovery import create_file
from rl4sys.server import InProcessTransport
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import status_pb2

Serve = Callable[..., InProcessTransport]
METHOD = (PPO[0], PPO[1] | {"checkpoint_frequency": 64})


@pytest.fixture
def learner(serve: Serve, tmp_path: Path) -> Path:
    """A drained learner of 20 records in several files, with a checkpoint of all of them."""
    transport = serve()
    client = ScriptedClient(transport, join_request("a", METHOD))
    hosted = transport._service._learners.find("a")
    assert hosted is not None
    assert hosted.inbox._records is not None
    hosted.inbox._records._file_bytes = 900
    for sequence in range(20):
        client.push([sequence])
    wait_for_version(client, 5)
    transport._service.drain()
    return tmp_path / "data" / "learners" / "a"


def status(transport: InProcessTransport) -> status_pb2.LearnerStatus:
    return transport.status(status_pb2.StatusRequest(), 5.0).learners[0]


def shorten(learner: Path, missing: int) -> None:
    """Replace the log by one that lacks its last records."""
    log = learner / "log"
    first = min(int(path.stem) for path in log.glob("*.records"))
    reader = RecordReader(log, first)
    payloads = [record.payload for record in reader.read(1 << 30)]
    reader.close()
    for path in log.iterdir():
        path.unlink()
    create_file(log, DiskFiles(), first).close()
    short = RecordLog(log)
    short.append(payloads[:-missing])
    short.close()


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize("newest", [False, True], ids=["finished file", "newest file"])
@pytest.mark.parametrize("offset", [3, 60, -10], ids=["header", "record", "last record"])
def test_damage_that_a_checkpoint_covers_stops_nothing(
    serve: Serve, learner: Path, newest: bool, offset: int, caplog: pytest.LogCaptureFixture
) -> None:
    files = sorted((learner / "log").glob("*.records"))
    flip(files[-1 if newest else 0], offset)
    client = ScriptedClient(serve(), join_request("a", METHOD))
    assert client.push(range(20)).repeated_segments == 20
    client.push(range(20, 24))
    expected = local_learner(METHOD, 24).store.newest
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
    assert "that a sound checkpoint covers" in caplog.text
    assert not status(client.transport).problem


def test_a_shortened_log_is_held_and_its_checkpoints_stay(serve: Serve, learner: Path) -> None:
    shorten(learner, missing=3)
    before = sorted(path.name for path in (learner / "checkpoints").iterdir())
    transport = serve()
    held = status(transport)
    assert held.state == status_pb2.LEARNER_STATE_HELD
    assert "sound checkpoint of 20 records: 3 acknowledged records are missing" in held.problem
    assert f"rl4sys data repair {learner.parent.parent} --learner 'a' --from-checkpoint" in held.problem
    client = ScriptedClient(transport, join_request("a", METHOD))
    assert client.weights().size > 0
    with pytest.raises(CallFailed, match="3 acknowledged records are missing"):
        client.push([100])
    transport._service.drain()
    assert sorted(path.name for path in (learner / "checkpoints").iterdir()) == before


def test_a_log_that_lacks_acknowledged_records_is_held_without_a_newer_checkpoint(serve: Serve, learner: Path) -> None:
    shorten(learner, missing=3)
    for path in (learner / "checkpoints").glob("0*20/state.json"):
        flip(path, 5)
    held = status(serve())
    assert held.state == status_pb2.LEARNER_STATE_HELD
    assert "and 20 records were stored: 3 acknowledged records are missing" in held.problem


def test_damage_beyond_the_newest_sound_checkpoint_is_held(serve: Serve, learner: Path) -> None:
    for path in (learner / "checkpoints").glob("0*20/state.json"):
        flip(path, 5)
    flip(sorted((learner / "log").glob("*.records"))[-1], -10)
    held = status(serve())
    assert held.state == status_pb2.LEARNER_STATE_HELD
    assert "is damaged or missing" in held.problem
    assert "--from-log" in held.problem


def test_an_unreadable_file_of_identities_holds_a_pruned_log(serve: Serve, learner: Path) -> None:
    (learner / "stored.json").write_text("{}")
    assert min(int(path.stem) for path in (learner / "log").glob("*.records")) > 0
    held = status(serve())
    assert held.state == status_pb2.LEARNER_STATE_HELD
    assert "segments could be learned from twice" in held.problem

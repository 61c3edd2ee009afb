from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, acknowledged, eventually, join_request
from tests.server.data_directory.restored import OPTIONS, require_equal_bits
from tests.server.data_directory.test_backup import Killed, at
from tests.server.learners.test_held_data import METHOD, flip, status
from tests.server.workers.test_fold import wait_for_version

from rl4sys import failpoints
from rl4sys.server import ImpossibleSetup, InProcessTransport, TrainingService
from rl4sys.server.data_directory.backup import back_up
from rl4sys.server.data_directory.backup_manifest import BackupDamaged, BackupManifest
from rl4sys.server.data_directory.directory_check import DataInUse, check_directory
from rl4sys.server.data_directory.restore import RestoreRefused, restore
from rl4sys.server.learners.lineage import Lineage

Serve = Callable[..., InProcessTransport]


@pytest.fixture(autouse=True)
def _no_listener() -> Iterator[None]:
    yield
    failpoints.listen(None)


@pytest.fixture
def backup(learner: Path, tmp_path: Path) -> Path:
    back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    return tmp_path / "backup"


def test_every_damaged_or_missing_file_is_refused_by_its_name(backup: Path, tmp_path: Path) -> None:
    for name in BackupManifest.read(backup).files:
        path = backup / "data" / name
        before = path.read_bytes()
        flip(path, len(before) // 2)
        with pytest.raises(BackupDamaged, match=path.name):
            restore(backup, tmp_path / "restored", 0.0)
        path.unlink()
        with pytest.raises(BackupDamaged, match=path.name):
            restore(backup, tmp_path / "restored", 0.0)
        path.write_bytes(before)
    assert not (tmp_path / "restored").exists()
    assert require_equal_bits(backup, tmp_path / "restored", METHOD) == 20


def test_a_damaged_manifest_is_refused(backup: Path, tmp_path: Path) -> None:
    text = (backup / "manifest.json").read_text()
    (backup / "manifest.json").write_text(text.replace('"records": 20', '"records": 21'))
    with pytest.raises(BackupDamaged, match="its SHA-256 differs"):
        restore(backup, tmp_path / "restored", 0.0)


def test_a_directory_with_data_is_refused_and_replaced_only_if_asked(backup: Path, tmp_path: Path) -> None:
    with pytest.raises(RestoreRefused, match="is not empty: it has learners"):
        restore(backup, tmp_path / "data", 0.0)
    before = sorted(path.name for path in (tmp_path / "data" / "learners" / "a").iterdir())
    _, replaced = restore(backup, tmp_path / "data", 0.0, replace=True)
    assert replaced == tmp_path / "data" / "deleted" / "replaced-19700101-000000"
    assert sorted(path.name for path in (replaced / "learners" / "a").iterdir()) == before
    assert check_directory(tmp_path / "data").findings == []


def test_a_directory_in_use_is_refused(serve: Serve, backup: Path, tmp_path: Path) -> None:
    serve()
    with pytest.raises(DataInUse, match="used by a server"):
        restore(backup, tmp_path / "data", 0.0, replace=True)


@pytest.mark.parametrize("point", ["after backup file", "before restored names", "between restored names"])
def test_a_server_refuses_an_interrupted_restore_which_can_be_repeated(
    backup: Path, tmp_path: Path, point: str
) -> None:
    def die() -> None:
        raise Killed

    at(point, die)
    with pytest.raises(Killed):
        restore(backup, tmp_path / "data", 0.0, replace=True)
    failpoints.listen(None)
    with pytest.raises(ImpossibleSetup, match="A restore into"):
        TrainingService(tmp_path / "data", OPTIONS)
    restore(backup, tmp_path / "data", 1.0, replace=True)
    assert check_directory(tmp_path / "data").findings == []
    TrainingService(tmp_path / "data", OPTIONS).drain()


def test_a_restore_killed_after_its_last_name_is_complete(backup: Path, tmp_path: Path) -> None:
    def die() -> None:
        raise Killed

    at("after restored names", die)
    with pytest.raises(Killed):
        restore(backup, tmp_path / "restored", 0.0)
    failpoints.listen(None)
    TrainingService(tmp_path / "restored", OPTIONS).drain()
    assert check_directory(tmp_path / "restored").findings == []


def test_clients_ahead_of_a_backup_are_named_and_follow_when_an_operator_accepts(
    serve: Serve, backup: Path, tmp_path: Path
) -> None:
    client = ScriptedClient(serve(), join_request("a", METHOD))
    client.push(range(20, 36), version=5)
    wait_for_version(client, 8)
    client.transport._service.drain()
    restore(backup, tmp_path / "data", 0.0, replace=True)
    transport = serve()
    hosted = transport._service._learners.find("a")
    assert hosted is not None
    eventually(lambda: hosted.inbox.unfolded == 0)
    request = join_request("a", METHOD)
    request.lineage, request.have = client.joined.lineage, 8
    ScriptedClient(transport, request)
    assert f"version 8 of lineage {client.joined.lineage}" in status(transport).problem
    assert "rl4sys learners accept a" in status(transport).problem
    lineage = hosted.accept_lineages()
    assert lineage.continues(client.joined.lineage)
    assert lineage.id != client.joined.lineage


def test_a_restored_learner_never_uses_a_version_number_again_within_a_lineage(
    serve: Serve, backup: Path, tmp_path: Path
) -> None:
    client = ScriptedClient(serve(), join_request("a", METHOD))
    client.transport._service.drain()
    restore(backup, tmp_path / "data", 0.0, replace=True)
    assert not Lineage.read(tmp_path / "data" / "learners" / "a").continues(client.joined.lineage)


def test_clients_follow_at_once_if_nothing_was_published_after_the_backup(
    serve: Serve, backup: Path, tmp_path: Path
) -> None:
    client = ScriptedClient(serve(), join_request("a", METHOD))
    client.transport._service.drain()
    restore(backup, tmp_path / "data", 0.0, replace=True, keeps_lineages=True)
    again = ScriptedClient(serve(), join_request("a", METHOD))
    assert again.joined.lineage == client.joined.lineage


def test_after_a_restore_known_segments_are_repeated_and_later_ones_are_stored(
    serve: Serve, backup: Path, tmp_path: Path
) -> None:
    client = ScriptedClient(serve(), join_request("a", METHOD))
    client.push(range(20, 30))
    client.transport._service.drain()
    restore(backup, tmp_path / "data", 0.0, replace=True)
    client = ScriptedClient(serve(), join_request("a", METHOD))
    reply = client.push(range(18, 24))
    assert reply.repeated_segments == 2
    assert acknowledged(reply) == list(range(18, 24))

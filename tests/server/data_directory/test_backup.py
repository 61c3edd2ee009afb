from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.clients import DQN, PPO, ScriptedClient, eventually, join_request
from tests.server.data_directory.restored import learner_records, require_equal_bits
from tests.server.learners.test_held_data import METHOD, flip, shorten
from tests.server.workers.test_fold import wait_for_version

from rl4sys import failpoints
from rl4sys.server import InProcessTransport
from rl4sys.server.data_directory.backup import BackupRefused, back_up
from rl4sys.server.data_directory.backup_manifest import BackupDamaged
from rl4sys.server.data_directory.directory_check import check_directory
from rl4sys.server.data_directory.restore import restore
from rl4sys.server.learners.lineage import Lineage

Serve = Callable[..., InProcessTransport]
REPLAYED = (DQN[0], DQN[1] | {"checkpoint_frequency": 64})
POINTS = ("backup opened", "before backup file", "after backup file", "backup before end of log")


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture(autouse=True)
def _no_listener() -> Iterator[None]:
    yield
    failpoints.listen(None)


def at(point: str, act: Callable[[], object], turn: int = 0) -> None:
    """Act once, when the thread of the test reaches a point for this time."""
    thread, reached = threading.current_thread(), [0]

    def listener(name: str) -> None:
        if name == point and threading.current_thread() is thread:
            reached[0] += 1
            if reached[0] == turn + 1:
                act()

    failpoints.listen(listener)


def pushing_client(serve: Serve, method: tuple[str, dict[str, object]], file_bytes: int = 900) -> ScriptedClient:
    client = ScriptedClient(serve(), join_request("a", method))
    hosted = client.transport._service._learners.find("a")
    assert hosted is not None
    assert hosted.inbox._records is not None
    hosted.inbox._records._file_bytes = file_bytes
    return client


@pytest.mark.parametrize("method", [METHOD, REPLAYED], ids=["PPO", "DQN"])
@pytest.mark.parametrize("point", POINTS)
def test_whatever_is_stored_saved_and_removed_meanwhile_the_backup_has_equal_bits(
    serve: Serve, tmp_path: Path, point: str, method: tuple[str, dict[str, object]]
) -> None:
    client = pushing_client(serve, method)
    client.push(range(21))
    wait_for_version(client, 1)
    log = tmp_path / "data" / "learners" / "a" / "log"

    def learn_and_prune() -> None:
        first = min(log.glob("*.records"))
        for sequence in range(21, 60):
            client.push([sequence])
        eventually(lambda: not first.exists())

    at(point, learn_and_prune)
    back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    failpoints.listen(None)
    client.transport._service.drain()
    assert require_equal_bits(tmp_path / "backup", tmp_path / "restored", method) >= 21


def test_backups_under_load_have_everything_acknowledged_before_and_equal_bits(serve: Serve, tmp_path: Path) -> None:
    client = pushing_client(serve, REPLAYED)
    pushed, is_over = [0], threading.Event()

    def push() -> None:
        while not is_over.is_set() and pushed[0] < 600:
            client.push([pushed[0]])
            pushed[0] += 1

    thread = threading.Thread(target=push)
    thread.start()
    began = []
    for number in range(4):
        eventually(lambda n=number: pushed[0] >= 40 * (n + 1) or not thread.is_alive())
        began.append(pushed[0])
        back_up(tmp_path / "data", tmp_path / f"backup {number}", 0.0)
        assert check_directory(tmp_path / "data").findings == []
    is_over.set()
    thread.join()
    client.transport._service.drain()
    for number, acknowledged in enumerate(began):
        place = tmp_path / f"restored {number}"
        assert require_equal_bits(tmp_path / f"backup {number}", place, REPLAYED) >= acknowledged


def test_a_learner_that_never_stored_anything_is_backed_up(serve: Serve, tmp_path: Path) -> None:
    ScriptedClient(serve(), join_request("a", PPO))
    back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    assert require_equal_bits(tmp_path / "backup", tmp_path / "restored", PPO) == 0


@pytest.mark.parametrize("point", POINTS)
def test_a_new_lineage_meanwhile_is_copied_as_a_whole(serve: Serve, tmp_path: Path, point: str) -> None:
    client = pushing_client(serve, METHOD)
    client.push(range(20))
    hosted = client.transport._service._learners.find("a")
    assert hosted is not None
    at(point, hosted.new_lineage)
    manifest = back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    failpoints.listen(None)
    assert manifest.learners["a"].lineage == hosted.lineage.id
    assert Lineage.read(tmp_path / "backup" / "data" / "learners" / "a") == hosted.lineage
    client.transport._service.drain()
    require_equal_bits(tmp_path / "backup", tmp_path / "restored", METHOD)


def test_a_learner_that_is_deleted_meanwhile_is_not_in_the_backup(serve: Serve, tmp_path: Path) -> None:
    client = pushing_client(serve, METHOD)
    client.push(range(20))
    learners = client.transport._service._learners
    hosted = learners.find("a")
    assert hosted is not None
    at("backup before end of log", lambda: learners.discard(hosted, is_purged=False))
    manifest = back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    assert (manifest.learners, manifest.left_out) == ({}, {})
    assert not any("/a/" in name for name in manifest.files)


def test_a_damaged_learner_is_left_out_and_named(serve: Serve, learner: Path, tmp_path: Path) -> None:
    client = ScriptedClient(serve(), join_request("b", METHOD))
    client.push(range(3))
    client.transport._service.drain()
    shorten(learner, missing=3)
    for path in (learner / "checkpoints").glob("0*/state.json"):
        flip(path, 5)
    manifest = back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    assert set(manifest.learners) == {"b"}
    assert "rl4sys data check" in manifest.left_out["a"]
    assert not any("/a/" in name for name in manifest.files)


def test_damage_that_a_checkpoint_covers_is_no_reason_to_leave_a_learner_out(learner: Path, tmp_path: Path) -> None:
    flip(sorted((learner / "log").glob("*.records"))[0], 60)
    assert back_up(tmp_path / "data", tmp_path / "backup", 0.0).learners["a"].records == 20


def test_an_older_checkpoint_is_copied_if_the_newest_is_damaged(learner: Path, tmp_path: Path) -> None:
    flip(sorted((learner / "checkpoints").glob("0*"))[-1] / "arrays.safetensors", -1)
    assert back_up(tmp_path / "data", tmp_path / "backup", 0.0).learners["a"].checkpoint == 16
    assert require_equal_bits(tmp_path / "backup", tmp_path / "restored", METHOD) == 20


@pytest.mark.parametrize("turn", range(9))
def test_a_backup_killed_at_any_file_leaves_nothing_that_can_be_restored(
    learner: Path, tmp_path: Path, turn: int
) -> None:
    def die() -> None:
        raise Killed

    at("after backup file", die, turn)
    with pytest.raises(Killed):
        back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    failpoints.listen(None)
    for place in (tmp_path / "backup", tmp_path / ".backup.tmp"):
        with pytest.raises(BackupDamaged):
            restore(place, tmp_path / "restored", 0.0)
    assert not (tmp_path / "restored").exists()
    back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    assert learner_records(tmp_path / "backup") == 20
    assert not (tmp_path / ".backup.tmp").exists()


@pytest.mark.parametrize("turn", range(9))
def test_an_io_error_at_any_file_leaves_nothing_and_the_next_backup_succeeds(
    learner: Path, tmp_path: Path, turn: int
) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device")

    at("before backup file", fail, turn)
    with pytest.raises(OSError, match="No space left"):
        back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    failpoints.listen(None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    assert learner_records(tmp_path / "backup") == 20


def test_an_existing_target_and_one_within_the_data_are_refused(learner: Path, tmp_path: Path) -> None:
    (tmp_path / "backup").mkdir()
    with pytest.raises(BackupRefused, match="exists"):
        back_up(tmp_path / "data", tmp_path / "backup", 0.0)
    with pytest.raises(BackupRefused, match="is within"):
        back_up(tmp_path / "data", tmp_path / "data" / "backup", 0.0)

"""Backups of a real server under load, and backups that are killed: what can be restored has equal bits."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.processes import ROOT, Server
from tests.faults.reference_fold import digest_of_newest, folded_without_faults
from tests.server.clients import DQN, ScriptedClient, eventually, join_request

from rl4sys.server.data_directory.backup_manifest import BackupDamaged, BackupManifest
from rl4sys.server.data_directory.restore import restore

METHOD = (DQN[0], DQN[1] | {"checkpoint_frequency": 400})
pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.close()


class Pusher:
    """Pushes segment after segment until it is stopped."""

    def __init__(self, server: Server) -> None:
        self.acknowledged = 0
        self._is_over = threading.Event()
        self._client = ScriptedClient(server.transport, join_request("a", METHOD))
        self._thread = threading.Thread(target=self._push)
        self._thread.start()

    def _push(self) -> None:
        while not self._is_over.is_set():
            self._client.push([self.acknowledged])
            self.acknowledged += 1

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join()


def start_backup(data: Path, target: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rl4sys.cli", "data", "backup", str(data), str(target)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=ROOT)


def test_a_backup_of_a_real_server_under_load_restores_to_the_bits_of_the_log(server: Server, tmp_path: Path) -> None:
    pusher = Pusher(server)
    eventually(lambda: any((server.data / "learners/a/checkpoints").glob("0*")))
    began = pusher.acknowledged
    assert start_backup(server.data, tmp_path / "backup").wait(60) == 0
    pusher.stop()
    server.kill()
    (tmp_path / "place").mkdir()
    restored = Server(tmp_path / "place")
    manifest, _ = restore(tmp_path / "backup", restored.data, 0.0)
    assert began <= manifest.learners["a"].records <= pusher.acknowledged
    restored.start()
    try:
        eventually(lambda: restored.has_learned("a"))
        assert restored.terminate(20) == 0
    finally:
        restored.close()
    learner = restored.data / "learners" / "a"
    assert digest_of_newest(learner) == folded_without_faults(learner, tmp_path / "none", tmp_path / "reference")


def test_backups_killed_at_random_times_leave_all_or_nothing(server: Server, tmp_path: Path) -> None:
    pusher = Pusher(server)
    eventually(lambda: pusher.acknowledged > 50)
    complete = 0
    for trial in range(8):
        target = tmp_path / f"backup {trial}"
        process = start_backup(server.data, target)
        aside = target.with_name(f".{target.name}.tmp")
        names = [aside, aside / "data", *(aside / f"data/learners/a/{part}" for part in ("versions", "log"))]
        eventually(lambda place=names[trial % 4], process=process: place.exists() or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        process.wait()
        if target.exists():
            restore(target, tmp_path / f"restored {trial}", 0.0)
            complete += 1
        elif not (aside / "manifest.json").exists():
            with pytest.raises(BackupDamaged):
                BackupManifest.read(aside)
    pusher.stop()
    assert complete < 8

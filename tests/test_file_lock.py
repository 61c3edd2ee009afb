from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rl4sys.file_lock import FileLock

_HOLDER = """
import sys
from pathlib import Path
from rl4sys.file_lock import FileLock
lock = FileLock.acquire(Path(sys.argv[1]), create=0o600)
print("held", flush=True)
sys.stdin.read()
"""


def test_only_one_exclusive_lock_is_held_at_a_time(tmp_path: Path) -> None:
    first = FileLock.try_acquire(tmp_path / "lock", create=0o600)
    assert first is not None
    assert FileLock.try_acquire(tmp_path / "lock") is None
    first.release()
    second = FileLock.try_acquire(tmp_path / "lock")
    assert second is not None
    second.release()


def test_shared_locks_exclude_exclusive_ones_only(tmp_path: Path) -> None:
    with FileLock.acquire(tmp_path, shared=True):
        again = FileLock.try_acquire(tmp_path, shared=True)
        assert again is not None
        assert FileLock.try_acquire(tmp_path) is None
        again.release()
    with FileLock.acquire(tmp_path):
        assert FileLock.try_acquire(tmp_path, shared=True) is None


def test_a_lock_is_waited_for(tmp_path: Path) -> None:
    order: list[str] = []

    def wait() -> None:
        with FileLock.acquire(tmp_path):
            order.append("second")

    with FileLock.acquire(tmp_path):
        thread = threading.Thread(target=wait)
        thread.start()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert FileLock.try_acquire(path) is None
        process.kill()
    FileLock.acquire(path).release()


def test_a_missing_file_is_made_only_if_asked_for(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        FileLock.acquire(tmp_path / "lock")
    with FileLock.acquire(tmp_path / "lock", create=0o600) as lock:
        os.pwrite(lock.descriptor, b"whole", 0)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "lock").read_bytes() == b"whole"


def test_a_refused_lock_leaves_no_descriptor_open(tmp_path: Path) -> None:
    with FileLock.acquire(tmp_path):
        before = os.listdir("/proc/self/fd")
        assert FileLock.try_acquire(tmp_path) is None
        assert os.listdir("/proc/self/fd") == before


def test_a_forked_child_does_not_keep_a_private_lock(tmp_path: Path) -> None:
    lock = FileLock.acquire(tmp_path / "lock", create=0o600).private()
    (ready, says_ready), (end, says_end) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.close(says_end)
        os.write(says_ready, b"!")
        # Lives on until the parent has locked the file again.
        os.read(end, 1)
        os._exit(0)
    os.read(ready, 1)
    lock.release()
    again = FileLock.try_acquire(tmp_path / "lock", create=0o600)
    os.close(says_end)
    os.waitpid(child, 0)
    for descriptor in (ready, says_ready, end):
        os.close(descriptor)
    assert again is not None
    again.release()

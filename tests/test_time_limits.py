from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = """
import ctypes, subprocess, threading
import pytest

def test_a_waits_for_a_process():
    with subprocess.Popen(["tail", "-f", "/dev/null"]) as process:
        print("started", process.pid, "here")
        threading.Thread(target=threading.Event().wait, name="waiting-for-godot", daemon=True).start()
        threading.Event().wait()

def test_b_follows():
    pass

def test_c_is_stuck_in_c_code():
    subprocess.Popen(["tail", "-f", "/dev/null"])
    c, mutex = ctypes.PyDLL(None), ctypes.create_string_buffer(64)
    c.pthread_mutex_lock(mutex)
    c.pthread_mutex_lock(mutex)     # Waits with the interpreter's lock held; signals do not end it.

@pytest.fixture
def stuck():
    yield
    threading.Event().wait()

def test_d_fails_and_hangs_in_teardown(stuck):
    assert False

def test_e_follows():
    pass
"""


@pytest.mark.slow
def test_hanging_tests_fail_by_name_with_all_stacks_leave_no_process_and_the_run_continues(tmp_path: Path) -> None:
    (tmp_path / "test_hanging.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.time_limits", "-n", "1", "-p", "no:cacheprovider", "-v"]
    command += ["--timeout", "2", "--timeout-grace", "2", "--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)]
    mark = {"LEFT_BEHIND_BY": str(tmp_path)}

    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | mark, timeout=120)

    said = done.stdout + done.stderr
    assert "test_a_waits_for_a_process hangs: it did not end within 2 s." in said, said
    assert "Stack of waiting-for-godot" in said
    assert "Stack of MainThread" in said
    assert "killed: " in said
    assert "crashed while running 'test_hanging.py::test_c_is_stuck_in_c_code'" in said
    assert "in test_c_is_stuck_in_c_code" in said
    assert "test_d_fails_and_hangs_in_teardown hangs" in said
    assert said.count("PASSED") == 2
    assert _processes_with(f"LEFT_BEHIND_BY={tmp_path}") == []


def _processes_with(variable: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if variable.encode() in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found

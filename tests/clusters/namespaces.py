"""Programs of tests in network and process namespaces of their own, which end with all that they started."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import TESTS

SEARCHED = f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"


def needs(*programs: str) -> pytest.MarkDecorator:
    """Skips tests where namespaces or programs are missing."""
    wanted = ("unshare", "ip", *programs)
    missing = [program for program in wanted if shutil.which(program, path=SEARCHED) is None]
    reason = f"needs {', '.join(missing)}" if missing else "needs root"
    return pytest.mark.skipif(bool(missing) or os.geteuid() != 0, reason=reason)


def run_inside(module: str, *arguments: str | Path) -> Any:
    """Run `python -m module` in new namespaces; what it prints, which is JSON."""
    program = shlex.join([sys.executable, "-m", module, *map(str, arguments)])
    # Loopback is the only network, and Ray notes its clusters in /tmp/ray, where those outside must not see them.
    before = "ip link set lo up && mkdir -p /tmp/ray && mount -t tmpfs tmpfs /tmp/ray"
    # bash waits for processes whose parents ended, which python would leave as zombies.
    inside = [
        "unshare",
        "--net",
        "--pid",
        "--fork",
        "--mount-proc",
        "--kill-child",
        "bash",
        "-c",
        f"{before} && {program}; exit $?",
    ]
    environment = os.environ | {"PYTHONPATH": f"{TESTS}:{TESTS.parent / 'src'}", "PATH": SEARCHED}
    done = subprocess.run(inside, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)

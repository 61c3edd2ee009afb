"""`make setup` builds the native runtime where it can, and says in one line why it does not elsewhere."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def installed(directory: Path, compiler: str, python: str) -> tuple[list[str], bool]:
    """The lines that the installation prints, and whether it is noted as done."""
    stamp = directory / "stamp"
    command = [str(ROOT / "cpp/python/install.sh"), python, str(stamp)]
    environment = {**os.environ, "CXX": compiler, "TMPDIR": str(directory)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.splitlines(), stamp.exists()


def test_without_a_compiler_one_line_says_that_numpy_decides(tmp_path: Path) -> None:
    lines, is_done = installed(tmp_path, "no-such-compiler", "false")
    (line,) = lines
    assert line.startswith("There is no C++ compiler, so policies run with numpy")
    assert not is_done


def test_a_build_that_fails_leaves_its_log_and_numpy(tmp_path: Path) -> None:
    failing = tmp_path / "python"
    failing.write_text("#!/bin/sh\necho no headers\nexit 1\n")
    failing.chmod(0o755)
    lines, is_done = installed(tmp_path, "true", str(failing))
    assert lines[-1].startswith("The native runtime could not be built, so policies run with numpy")
    assert Path(lines[-1].rpartition(" ")[2]).read_text() == "no headers\n"
    assert not is_done


def test_a_build_that_succeeds_is_not_repeated(tmp_path: Path) -> None:
    lines, is_done = installed(tmp_path, "true", "true")
    assert len(lines) == 1
    assert is_done


@pytest.mark.parametrize(
    ("system", "machine", "is_wanted"),
    [("linux", "x86_64", True), ("linux", "aarch64", True), ("linux", "riscv64", False), ("darwin", "arm64", False)],
)
def test_the_extra_asks_for_the_extension_only_where_there_are_wheels(
    system: str, machine: str, is_wanted: bool
) -> None:
    (line,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["native"]
    marker = Requirement(line).marker
    assert marker is not None
    place = {"sys_platform": system, "platform_machine": machine, "implementation_name": "cpython"}
    assert marker.evaluate(place) == is_wanted

"""The shared libraries of the C++ client: what they export, and a program that uses them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from tests.cpp.programs import ROOT, needs_cpp

pytestmark = [needs_cpp, pytest.mark.faults, pytest.mark.timeout(1800)]

INTERNAL = re.compile(r"rl4sys::(client|wire|records|v1|detail)::|google::|grpc::|nlohmann|absl::")
PARTS = ("TESTS", "EXAMPLES", "BENCHMARKS")


def run(*command: str | Path) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


def exported(library: Path) -> list[str]:
    return [line.split(maxsplit=2)[2] for line in run("nm", "-DC", "--defined-only", library).splitlines()]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the shared libraries are installed. `RL4SYS_CPP_SHARED` names a build directory to reuse."""
    build = Path(os.environ.get("RL4SYS_CPP_SHARED") or tmp_path_factory.mktemp("shared"))
    without = [f"-DRL4SYS_BUILD_{part}=OFF" for part in PARTS]
    run("cmake", "-G", "Ninja", "-S", ROOT / "cpp", "-B", build, "-DBUILD_SHARED_LIBS=ON", *without)
    run("cmake", "--build", build, "--parallel", "2")
    installed = tmp_path_factory.mktemp("installed")
    run("cmake", "--install", build, "--prefix", installed)
    return installed


def test_the_shared_libraries_export_the_public_interface_only(prefix: Path) -> None:
    (client,) = prefix.glob("lib*/**/librl4sys.so")
    (policy,) = prefix.glob("lib*/**/librl4sys_policy.so")
    header = (prefix / "include" / "rl4sys" / "rl4sys.h").read_text()
    functions = set(re.findall(r"(rl4sys_[a-z_]+)\(", header))
    of_client, of_policy = exported(client), exported(policy)
    assert functions <= set(of_client)
    foreign = [name for name in of_client + of_policy if "rl4sys" not in name]
    assert foreign == []
    internal = [name for name in of_client + of_policy if INTERNAL.match(name) and "best_kernels" not in name]
    assert internal == []
    assert len(of_client) < 500
    assert len(of_policy) < 500


def test_a_program_links_the_shared_client(prefix: Path, tmp_path: Path) -> None:
    options = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release"]
    run("cmake", "-G", "Ninja", "-S", ROOT / "cpp" / "tests" / "package" / "client", "-B", tmp_path, *options)
    run("cmake", "--build", tmp_path)
    run(tmp_path / "uses_rl4sys")

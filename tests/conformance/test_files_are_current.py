import subprocess
import sys

from .golden import CONFORMANCE, VECTORS


def test_the_committed_vectors_are_what_the_generator_writes() -> None:
    command = [sys.executable, str(CONFORMANCE / "generate.py"), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_vectors_stay_small() -> None:
    assert sum(file.stat().st_size for file in VECTORS.iterdir()) < 9_000_000

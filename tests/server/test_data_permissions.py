"""A data directory that other users can enter is a warning until that is repaired."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.server.conftest import THREADS

from rl4sys.server import TrainingService
from rl4sys.server.data_permissions import check_permissions
from rl4sys.server.server_warnings import ServerWarnings


@pytest.mark.parametrize(("mode", "can"), [(0o750, "read"), (0o705, "read"), (0o770, "change")])
def test_an_existing_directory_that_others_can_enter_is_a_warning(tmp_path: Path, mode: int, can: str) -> None:
    data, warnings = tmp_path / "data", ServerWarnings()
    data.mkdir()
    data.chmod(mode)
    check_permissions(data, warnings)
    assert f"can {can} what is in {data} (mode {mode:04o})" in warnings.all()[0]
    data.chmod(0o700)
    check_permissions(data, warnings)
    assert warnings.all() == []


def test_the_status_of_a_server_has_the_warning(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with TrainingService(tmp_path, THREADS) as service:
        assert f"chmod 700 {tmp_path}" in service.current_status().server.warnings[0]


def test_a_server_creates_its_directory_for_its_own_user(tmp_path: Path) -> None:
    with TrainingService(tmp_path / "data", THREADS) as service:
        assert not service.current_status().server.warnings

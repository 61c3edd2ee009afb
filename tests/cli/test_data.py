from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.commands import Here
from tests.cli.test_without_extras import COMMAND, run
from tests.server.clients import ScriptedClient, join_request
from tests.server.conftest import THREADS
from tests.server.learners.test_held_data import METHOD, flip, shorten
from tests.server.workers.test_fold import wait_for_version

from rl4sys.server import InProcessTransport, TrainingService


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(monkeypatch, capsys)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with one learner of 20 records."""
    service = TrainingService(tmp_path / "data", THREADS)
    client = ScriptedClient(InProcessTransport(service), join_request("a", METHOD))
    client.push(range(20))
    wait_for_version(client, 5)
    service.drain()
    return tmp_path / "data"


def test_a_sound_directory_is_fine(here: Here, data: Path) -> None:
    done = here("data", "check", str(data))
    assert (done.code, done.out) == (0, f"Nothing is wrong with {data} (1 learner).\n")


def test_a_check_of_a_directory_in_use_says_so(here: Here, data: Path) -> None:
    service = TrainingService(data, THREADS)
    done = here("data", "check", str(data))
    service.drain()
    assert done.code == 0
    assert "A server is using" in done.err


def test_a_finding_is_a_line_with_what_to_do_and_problems_are_exit_code_1(here: Here, data: Path) -> None:
    shorten(data / "learners" / "a", missing=3)
    done = here("data", "check", str(data))
    assert done.code == 1
    assert "rl4sys data repair" in done.out
    found = json.loads(here("data", "check", str(data), "--json").out)
    assert found["problems"] is True
    assert [finding["learner"] for finding in found["findings"]] == ["a"]


def test_another_directory_is_exit_code_2(here: Here, tmp_path: Path) -> None:
    assert here("data", "check", str(tmp_path)).code == 2


def test_a_repair_shows_what_is_lost_and_does_it_only_if_confirmed(here: Here, data: Path) -> None:
    shorten(data / "learners" / "a", missing=3)
    assert "nothing to repair" in here("data", "repair", str(data), "--yes").err
    ask = ("data", "repair", str(data), "--learner", "a", "--from-checkpoint")
    planned = here(*ask, "--dry-run")
    assert (planned.code, "No acknowledged record is lost." in planned.out) == (1, True)
    done = json.loads(here(*ask, "--yes", "--json").out)
    assert done["left"] == []
    assert Path(done["repairs"][0]["moved_to"]).parent == data / "deleted"
    assert here("data", "check", str(data)).code == 0


def test_a_loss_needs_the_name_of_its_learner(here: Here, data: Path) -> None:
    done = here("data", "repair", str(data), "--from-log")
    assert (done.code, "they need --learner" in done.err) == (2, True)


def test_a_backup_is_restored_by_the_command_that_it_prints(here: Here, data: Path, tmp_path: Path) -> None:
    done = here("data", "backup", str(data), str(tmp_path / "backup"))
    assert done.code == 0
    assert f"rl4sys data restore {tmp_path / 'backup'} NEW_DIR" in done.out
    done = here("data", "restore", str(tmp_path / "backup"), str(tmp_path / "new"))
    assert (done.code, f"rl4sys serve --data {tmp_path / 'new'}" in done.out) == (0, True)
    assert here("data", "check", str(tmp_path / "new")).code == 0


def test_a_damaged_backup_is_refused_in_one_line(here: Here, data: Path, tmp_path: Path) -> None:
    here("data", "backup", str(data), str(tmp_path / "backup"))
    flip(tmp_path / "backup" / "data" / "learners" / "a" / "setup.json", 5)
    done = here("data", "restore", str(tmp_path / "backup"), str(tmp_path / "new"))
    assert done.code == 2
    assert "setup.json is not what was written" in done.err
    assert len(done.err.splitlines()) == 1


def test_a_backup_without_a_damaged_learner_is_exit_code_1(here: Here, data: Path, tmp_path: Path) -> None:
    (data / "learners" / "a" / "setup.json").unlink()
    done = here("data", "backup", str(data), str(tmp_path / "backup"), "--json")
    assert (done.code, json.loads(done.out)["left_out"]) == (1, {"a": "Its setup.json is missing."})


@pytest.mark.parametrize("command", ["check", "repair", "backup", "restore"])
def test_no_command_needs_torch(here: Here, data: Path, tmp_path: Path, command: str) -> None:
    here("data", "backup", str(data), str(tmp_path / "first"))
    arguments = {
        "check": [str(data)],
        "repair": [str(data), "--dry-run", "--json"],
        "backup": [str(data), str(tmp_path / "second")],
        "restore": [str(tmp_path / "first"), str(tmp_path / "new")],
    }
    done = run(
        ["torch", "gymnasium", "tensorboard", "matplotlib"],
        COMMAND.format(arguments=["data", command, *arguments[command]]),
    )
    assert (done.returncode, done.stderr) == (0, "")

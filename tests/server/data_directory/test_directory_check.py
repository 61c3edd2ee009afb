from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, join_request
from tests.server.learners.test_held_data import METHOD, flip, shorten

from rl4sys.records import RecordLog
from rl4sys.server import InProcessTransport
from rl4sys.server.data_directory.directory_check import NoDataDirectory, check_directory
from rl4sys.server.data_directory.findings import DataFinding

Serve = Callable[..., InProcessTransport]


def found(learner: Path) -> list[DataFinding]:
    return check_directory(learner.parent.parent).findings


def only(learner: Path) -> DataFinding:
    (finding,) = found(learner)
    return finding


def newest_file(learner: Path) -> Path:
    return sorted((learner / "log").glob("*.records"))[-1]


def damage_checkpoints(learner: Path) -> None:
    for path in (learner / "checkpoints").glob("0*/state.json"):
        flip(path, 5)


def test_a_sound_directory_has_no_findings(learner: Path) -> None:
    assert found(learner) == []


def test_a_directory_that_a_server_is_using_has_no_findings(serve: Serve, learner: Path) -> None:
    client = ScriptedClient(serve(), join_request("a", METHOD))
    client.push(range(20, 30))
    check = check_directory(learner.parent.parent)
    assert check.is_live
    assert check.findings == []


def test_bytes_that_a_server_is_just_writing_are_not_damage(serve: Serve, learner: Path) -> None:
    serve()
    with newest_file(learner).open("ab") as file:
        file.write(b"\xf5rec half a frame")
    assert found(learner) == []


def test_a_torn_tail_does_not_matter(learner: Path) -> None:
    with newest_file(learner).open("ab") as file:
        file.write(b"\xf5rec half a frame")
    assert not only(learner).matters
    assert only(learner).what == "The last 17 bytes were written in part, and never acknowledged."


def test_damage_below_a_sound_checkpoint_does_not_matter(learner: Path) -> None:
    flip(sorted((learner / "log").glob("*.records"))[0], 60)
    assert not only(learner).matters
    assert "a sound checkpoint has learned from them" in only(learner).what


def test_a_damaged_acknowledged_record_matters_and_has_two_ways_out(learner: Path) -> None:
    damage_checkpoints(learner)
    flip(newest_file(learner), -10)
    lost = next(finding for finding in found(learner) if "cannot be read, and were acknowledged" in finding.what)
    assert lost.matters
    assert "--from-checkpoint" in lost.advice
    assert "--from-log" in lost.advice


def test_a_log_that_is_shorter_than_a_checkpoint_matters(learner: Path) -> None:
    shorten(learner, missing=3)
    assert only(learner).matters
    assert "there is a sound checkpoint of 20 records" in only(learner).what


def test_a_log_that_is_shorter_than_its_identities_matters(learner: Path) -> None:
    shorten(learner, missing=3)
    damage_checkpoints(learner)
    assert any(finding.matters and "20 records were stored" in finding.what for finding in found(learner))


def test_a_damaged_header_is_found(learner: Path) -> None:
    flip(newest_file(learner), 3)
    assert "The header of a file is damaged" in only(learner).what


def test_a_missing_log_is_found(learner: Path) -> None:
    shutil.rmtree(learner / "log")
    assert only(learner).what == "20 records were stored, and there is no log."


def test_a_missing_file_of_the_committed_end_does_not_matter(learner: Path) -> None:
    (learner / "log" / "committed").unlink()
    assert not only(learner).matters


def test_a_damaged_checkpoint_matters_only_without_another_beginning(learner: Path) -> None:
    newest = sorted((learner / "checkpoints").glob("0*"))[-1]
    flip(newest / "arrays.safetensors", -1)
    damaged = next(finding for finding in found(learner) if "checkpoint is damaged" in finding.what)
    assert damaged.where == str(newest)
    assert not damaged.matters
    damage_checkpoints(learner)
    assert any(finding.matters and "no readable checkpoint covers" in finding.what for finding in found(learner))


def test_damaged_identities_matter_if_the_log_was_pruned(learner: Path) -> None:
    flip(learner / "stored.json", 40)
    assert any(finding.matters and "learned from twice" in finding.what for finding in found(learner))


@pytest.mark.parametrize("name", ["setup.json", "lineage.json", "orders.json"])
def test_a_damaged_small_file_matters(learner: Path, name: str) -> None:
    (learner / name).write_text("{")
    assert only(learner).matters
    assert only(learner).where == str(learner / name)


def test_a_missing_lineage_of_published_versions_matters(learner: Path) -> None:
    (learner / "lineage.json").unlink()
    assert only(learner).matters
    assert "the lineage that they belong to is missing" in only(learner).what


def test_a_setup_of_another_learner_matters(learner: Path) -> None:
    learner.rename(learner.with_name("b"))
    assert only(learner).what == "The setup is that of learner 'a'."


def test_a_missing_setup_matters(learner: Path) -> None:
    (learner / "setup.json").unlink()
    assert only(learner).matters


def test_a_damaged_archive_of_versions_does_not_matter(learner: Path) -> None:
    flip(sorted((learner / "versions").glob("*.versions"))[-1], 5)
    assert not only(learner).matters


def test_a_directory_for_other_users_matters(learner: Path) -> None:
    learner.parent.parent.chmod(0o755)
    assert only(learner).advice == f"chmod 700 {learner.parent.parent}"


def test_a_cut_line_of_the_audit_log_does_not_matter(learner: Path) -> None:
    (learner.parent.parent / "audit.jsonl").write_text('{"time": 1}\n{"ti')
    assert not only(learner).matters


def test_records_lost_without_fsync_are_reported(learner: Path) -> None:
    from rl4sys.records.committed_end import Ends, encode_ends

    (learner / "log" / "committed").write_bytes(encode_ends(Ends(25, 20)))
    assert only(learner).what.startswith("5 acknowledged records were not on the disk")


def test_a_check_changes_nothing(learner: Path) -> None:
    with newest_file(learner).open("ab") as file:
        file.write(b"torn")
    damage_checkpoints(learner)
    before = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in learner.rglob("*") if path.is_file()}
    found(learner)
    after = {path: (path.stat().st_mtime_ns, path.stat().st_size) for path in learner.rglob("*") if path.is_file()}
    assert after == before


def test_another_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoDataDirectory, match="it has no directory 'learners'"):
        check_directory(tmp_path)


def test_the_server_opens_every_log_that_the_check_finds_sound(learner: Path) -> None:
    assert found(learner) == []
    RecordLog(learner / "log").close()

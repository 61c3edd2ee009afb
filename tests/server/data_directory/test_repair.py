from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.server.clients import ScriptedClient, join_request
from tests.server.data_directory.test_directory_check import damage_checkpoints, newest_file
from tests.server.learners.test_held_data import METHOD, flip, shorten, status
from tests.server.workers.test_fold import local_learner, wait_for_version

from rl4sys.server import InProcessTransport
from rl4sys.server.data_directory.directory_check import DataInUse, alone_with, check_directory
from rl4sys.server.data_directory.rebuilt_learner import Beginning, NothingToBeginWith
from rl4sys.server.data_directory.repair import Repair, plan_repairs
from rl4sys.server.learners.lineage import Lineage

Serve = Callable[..., InProcessTransport]
NOW = 1_800_000_000.0


def repaired(learner: Path, beginning: Beginning | None = None) -> list[Repair]:
    """Carry out all repairs; nothing that matters is left."""
    data = learner.parent.parent
    with alone_with(data):
        repairs = plan_repairs(check_directory(data, is_alone=True), beginning, NOW)
        for repair in repairs:
            repair.carry_out()
    assert not check_directory(data).problems
    return repairs


def require_learns_on(serve: Serve, records: int) -> ScriptedClient:
    """The learner has the weights of so many first records, knows all twenty, and learns from four more."""
    client = ScriptedClient(serve(), join_request("a", METHOD))
    assert client.push(range(20)).repeated_segments == 20
    if records == 20:
        client.push(range(20, 24))
        records = 24
    expected = local_learner(METHOD, records).store.newest
    wait_for_version(client, expected.number)
    np.testing.assert_array_equal(client.weights(), expected.blob)
    return client


def test_a_torn_tail_is_cut_and_kept(serve: Serve, learner: Path) -> None:
    torn = newest_file(learner)
    with torn.open("ab") as file:
        file.write(b"torn")
    (repair,) = repaired(learner)
    assert repair.lost == 0
    assert check_directory(learner.parent.parent).findings == []
    (kept,) = (learner.parent.parent / "deleted").glob("a-damaged-*")
    assert (kept / "log" / torn.name).read_bytes().endswith(b"torn")
    require_learns_on(serve, 20)


def test_a_damaged_checkpoint_is_moved_aside_if_another_state_leads_to_it(serve: Serve, learner: Path) -> None:
    newest = sorted((learner / "checkpoints").glob("0*"))[-1]
    flip(newest / "state.json", 5)
    assert len(repaired(learner)) == 1
    assert not newest.exists()
    assert list((learner.parent.parent / "deleted").glob(f"a-damaged-*/checkpoints/{newest.name}/state.json"))
    require_learns_on(serve, 20)


def test_a_damaged_header_is_written_again(serve: Serve, learner: Path) -> None:
    newest = newest_file(learner)
    before = newest.read_bytes()
    flip(newest, 3)
    repaired(learner)
    assert newest.read_bytes() == before
    require_learns_on(serve, 20)


def test_permissions_are_restricted(learner: Path) -> None:
    learner.parent.parent.chmod(0o755)
    repaired(learner)
    assert learner.parent.parent.stat().st_mode & 0o777 == 0o700


def test_nothing_is_done_about_lost_records_without_a_decision(learner: Path) -> None:
    shorten(learner, missing=3)
    assert plan_repairs(check_directory(learner.parent.parent), None, NOW) == []


def test_a_checkpoint_that_has_learned_what_the_log_lacks_loses_nothing(serve: Serve, learner: Path) -> None:
    shorten(learner, missing=3)
    lineage = Lineage.read(learner)
    (repair,) = repaired(learner, Beginning.CHECKPOINT)
    assert repair.lost == 0
    assert "No acknowledged record is lost." in repair.what
    assert Lineage.read(learner) == lineage
    require_learns_on(serve, 20)


def test_lost_records_are_counted_and_all_others_are_used_in_a_new_lineage(serve: Serve, learner: Path) -> None:
    flip(sorted((learner / "checkpoints").glob("0*"))[-1] / "state.json", 5)
    flip(newest_file(learner), -10)
    old = Lineage.read(learner)
    (repair,) = repaired(learner, Beginning.CHECKPOINT)
    assert repair.lost == 1
    assert "the checkpoint of 16 records and 3 readable records" in repair.what
    assert Lineage.read(learner).replaced == (old.id,)
    client = require_learns_on(serve, 19)
    assert not status(client.transport).problem
    assert (next((learner.parent.parent / "deleted").glob("a-2*")) / "setup.json").exists()


def test_a_learner_without_a_checkpoint_can_learn_again_from_its_log(serve: Serve, learner: Path) -> None:
    damage_checkpoints(learner)
    first = min(int(path.stem) for path in (learner / "log").glob("*.records"))
    assert first > 0
    with pytest.raises(NothingToBeginWith, match="no sound checkpoint"):
        repaired(learner, Beginning.CHECKPOINT)
    (repair,) = repaired(learner, Beginning.LOG)
    assert repair.lost == 0
    assert f"{first} records that were learned from are no longer readable" in repair.what
    client = ScriptedClient(serve(), join_request("a", METHOD))
    assert client.push(range(20)).repeated_segments == 20
    client.push(range(20, 24))
    wait_for_version(client, (24 - first) // 4)
    assert not status(client.transport).problem


def test_lost_identities_are_counted(serve: Serve, learner: Path) -> None:
    (learner / "stored.json").write_text("{}")
    first = min(int(path.stem) for path in (learner / "log").glob("*.records"))
    (repair,) = repaired(learner, Beginning.CHECKPOINT)
    assert f"The identities of up to {first} segments are lost" in repair.what
    client = ScriptedClient(serve(), join_request("a", METHOD))
    assert client.push(range(first, 20)).repeated_segments == 20 - first


def test_a_directory_in_use_is_refused(serve: Serve, learner: Path) -> None:
    serve()
    with pytest.raises(DataInUse, match="used by a server"), alone_with(learner.parent.parent):
        pass

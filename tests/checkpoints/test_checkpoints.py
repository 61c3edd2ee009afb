from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl4sys.checkpoints import Checkpoints, NoCheckpoint
from rl4sys.experience import Array


class Rows:
    """A replay buffer that has taken in `total` rows and holds the newest 100."""

    def __init__(self, total: int) -> None:
        self.total, self.first = total, max(0, total - 100)

    def rows(self, first: int, last: int) -> Mapping[str, Array]:
        return {"reward": np.arange(first, last, dtype=np.float32)}

    def load_rows(self, first: int, rows: Mapping[str, Array]) -> None:
        raise AssertionError("nothing is loaded here")


def saved(tmp_path: Path, *steps: int, keep: int = 3) -> Checkpoints:
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep)
    for step in steps:
        checkpoints.save(step, {"step": step, "weights": np.full(50, step, np.float32)}, Rows(step))
    return checkpoints


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[random.Random(0).randrange(len(data))] ^= 0x10
    path.write_bytes(data)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("damage", [flip, truncate, os.remove], ids=["flip", "truncate", "remove"])
@pytest.mark.parametrize(
    "file",
    [
        "checkpoints/000000000080/state.json",
        "checkpoints/000000000080/arrays.safetensors",
        "checkpoints/000000000080/manifest.json",
        "replay/000000000040-000000000080.safetensors",
    ],
)
def test_the_previous_good_checkpoint_is_used_when_the_newest_is_damaged(
    tmp_path: Path, file: str, damage: Callable[[Path], None]
) -> None:
    checkpoints = saved(tmp_path, 40, 80)
    damage(tmp_path / file)
    loaded = checkpoints.load()
    assert loaded.step == 40
    assert len(loaded.skipped) == 1
    assert "000000000080: " in loaded.skipped[0]


def test_no_single_changed_bit_goes_unnoticed(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 40)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    rng = random.Random(1)
    for _ in range(300):
        path = rng.choice(files)
        good = path.read_bytes()
        place = rng.randrange(len(good))
        path.write_bytes(good[:place] + bytes([good[place] ^ 1 << rng.randrange(8)]) + good[place + 1 :])
        try:
            loaded: Any = checkpoints.load()
            assert loaded.state["weights"].tolist() == [40.0] * 50
            assert path.name == "manifest.json", "only the layout of the manifest may change without harm"
        except NoCheckpoint:
            pass
        path.write_bytes(good)


def test_when_all_are_damaged_the_error_names_each(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    for step in (1, 2):
        flip(tmp_path / f"checkpoints/{step:012d}/arrays.safetensors")
    with pytest.raises(NoCheckpoint, match=r"(?s)000000000002: arrays.*000000000001: arrays.*Train it again with"):
        checkpoints.load()


def test_the_newest_are_kept_and_the_best(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=2)
    for step in range(1, 6):
        checkpoints.save(step, {}, None, best=step == 2)
    assert checkpoints.steps() == [2, 4, 5]
    assert checkpoints.best() == 2
    assert os.readlink(tmp_path / "checkpoints" / "latest") == "000000000005"


def test_a_checkpoint_writes_only_the_rows_that_are_new(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 60, 120, 180, keep=2)
    chunks = sorted(path.name for path in (tmp_path / "replay").iterdir())
    # Rows 0 to 60 still belong to the checkpoint at 120, whose oldest row is 20.
    assert [name[7:12] + name[20:25] for name in chunks] == ["0000000060", "0006000120", "0012000180"]
    assert [chunk["first"] for chunk in checkpoints.load().chunks] == [60, 120]


def test_what_a_kill_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1)
    (tmp_path / "checkpoints" / ".000000000002.tmp").mkdir()
    (tmp_path / "checkpoints" / ".000000000002.tmp" / "state.json").write_text("{")
    (tmp_path / "checkpoints" / ".latest.tmp").symlink_to("nowhere")
    (tmp_path / "replay" / ".x.safetensors.tmp").write_text("")
    checkpoints.tidy()
    assert list(tmp_path.rglob(".*")) == []
    assert checkpoints.load().step == 1


def test_a_checkpoint_that_was_being_replaced_when_the_process_was_killed_returns(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 7)
    (tmp_path / "checkpoints" / "000000000007").rename(tmp_path / "checkpoints" / ".000000000007.old.tmp")
    checkpoints.tidy()
    assert checkpoints.load().step == 7


def test_saving_gives_up_the_history_that_lies_beyond(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 10, 20, 30)
    flip(tmp_path / "checkpoints" / "000000000030" / "state.json")
    checkpoints.load()
    checkpoints.save(25, {"step": 25}, None)
    assert checkpoints.steps() == [10, 20, 25]
    assert checkpoints.load().skipped == ()


def test_evaluating_needs_no_replayed_rows(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 40)
    shutil.rmtree(tmp_path / "replay")
    assert checkpoints.load_policy().step == 40


def test_the_best_can_be_marked_afterwards_and_only_if_it_is_there(tmp_path: Path) -> None:
    checkpoints = saved(tmp_path, 1, 2)
    checkpoints.mark_best(1)
    assert checkpoints.best() == 1
    checkpoints.mark_best(9)
    assert checkpoints.best() == 1
    checkpoints.mark_best(2)
    assert os.readlink(tmp_path / "checkpoints" / "best") == "000000000002"

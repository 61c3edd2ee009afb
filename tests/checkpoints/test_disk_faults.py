"""Whatever fails while a checkpoint is saved, loading gives the state before or the one after, never a mixture."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rl4sys.checkpoints import Checkpoints

from .test_checkpoints import Rows

OPERATIONS: list[tuple[Any, str]] = [
    (os, "fsync"),
    (os, "open"),
    (Path, "open"),
    (Path, "mkdir"),
    (Path, "rename"),
    (Path, "replace"),
    (Path, "symlink_to"),
    (Path, "unlink"),
]


class Faults:
    """Counts the calls that touch the disk, and lets one of them fail, all later ones too if `lasting`."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int, code: int, *, lasting: bool) -> None:
        self.calls, self._at, self._code, self._lasting = 0, at, code, lasting
        for owner, name in OPERATIONS:
            patch.setattr(owner, name, self._failing(getattr(owner, name)))

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def operate(*arguments: Any, **options: Any) -> Any:
            self.calls += 1
            is_hit = self.calls > self._at if self._lasting else self.calls == self._at + 1
            # What is removed is removed even on a full disk.
            if is_hit and real.__name__ != "unlink":
                raise OSError(self._code, os.strerror(self._code))
            return real(*arguments, **options)

        return operate


def state(step: int) -> dict[str, Any]:
    return {"step": step, "weights": np.full(20, step, np.float32)}


@pytest.mark.parametrize("second", [10, 20], ids=["same step", "next step"])
@pytest.mark.parametrize(("code", "lasting"), [(errno.EIO, False), (errno.ENOSPC, True)], ids=["error", "full disk"])
def test_a_failure_at_any_point_leaves_the_old_state_or_the_new(
    tmp_path: Path, second: int, code: int, lasting: bool
) -> None:
    for at in count():
        checkpoints = Checkpoints(tmp_path / str(at) / "checkpoints", keep=2)
        checkpoints.save(10, state(1), Rows(10))
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, at, code, lasting=lasting)
            try:
                checkpoints.save(second, state(2), Rows(20))
            except OSError:
                assert faults.calls > at
            else:
                break
        assert_whole(checkpoints, tmp_path / str(at))
    assert at > 15


def assert_whole(checkpoints: Checkpoints, place: Path) -> None:
    reopened = Checkpoints(place / "checkpoints", keep=2)
    reopened.tidy()
    loaded: Any = reopened.load()
    version = loaded.state["step"]
    assert loaded.state["weights"].tolist() == [float(version)] * 20
    assert loaded.chunks[-1]["last"] == 10 * version
    # And once the disk works again, saving does too.
    checkpoints.save(30, state(3), Rows(30))
    again: Any = checkpoints.load()
    assert (again.step, again.state["step"], again.chunks[-1]["last"]) == (30, 3, 30)

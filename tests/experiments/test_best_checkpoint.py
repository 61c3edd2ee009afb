from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.atomic_files import replace_link
from rl4sys.checkpoints import Checkpoints, checkpoints
from rl4sys.experiments import Run

from .runs import PPO, small


class Killed(BaseException):
    """Stands for a kill -9."""


def test_a_kill_between_the_best_checkpoint_and_its_link_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed_at_best(link: Path, target: str) -> None:
        if link.name == "best":
            raise Killed
        replace_link(link, target)

    run = Run.create(small(PPO, tmp_path))
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "replace_link", killed_at_best)
        with pytest.raises(Killed):
            run.train()
    saved = Checkpoints(run.directory.checkpoints, 3)
    assert (saved.steps()[-1], saved.best()) == (128, None)
    Run.resume(run.directory).close()
    assert saved.best() == 128

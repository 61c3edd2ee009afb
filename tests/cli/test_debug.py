"""`--debug`, alerts and `replay-update` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from rl4sys.experiments import RunDirectory

from .commands import Here


def only_run() -> Path:
    (path,) = (path for path in Path("runs").iterdir() if RunDirectory(path).is_run)
    return path


def test_a_run_can_be_debugged_from_the_start_and_after_a_stop(rl4sys: Here, config: Path) -> None:
    stop = 'alerts=[{when: "step >= 64", do: [stop]}]'
    code, _, err = rl4sys("train", str(config), stop, "--debug")
    assert code == 3
    assert "stopped by an alert: step >= 64" in err
    assert "where the processor's time went" in (only_run() / "debug/profile.txt").read_text()
    looks = (only_run() / "debug/gradients.jsonl").read_text().count("\n")
    assert looks > 0
    assert rl4sys("resume", str(only_run()), "--debug").code == 0
    assert (only_run() / "debug/gradients.jsonl").read_text().count("\n") > looks


def test_a_failed_update_can_be_repeated(rl4sys: Here, config: Path) -> None:
    Path("breaking.py").write_text(
        "import gymnasium as gym\n"
        "class Breaking(gym.RewardWrapper):\n"
        "    def reward(self, reward):\n"
        "        return 1e30\n"
        "gym.register('Breaking-v0', entry_point=lambda **k: Breaking(gym.make('CartPole-v1')))\n"
    )
    settings = ("plugins=[breaking.py]", "environment.name=Breaking-v0", "stability.skipped_in_row=1")
    code, _, err = rl4sys("train", str(config), *settings)
    assert code == 2
    assert "There is no good checkpoint to go back to" in err
    update = sorted((only_run() / "debug").glob("update-*"))[0]
    code, out, _ = rl4sys("replay-update", str(update), "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["update"], facts["is_exact"], facts["error"]) == (1, False, facts["cause"])
    assert "batch reward" in facts["faults"][0]
    assert "not finite, or too large: batch reward" in rl4sys("replay-update", str(update)).out


def test_a_directory_without_a_failed_update_is_refused(rl4sys: Here) -> None:
    code, _, err = rl4sys("replay-update", "nowhere")
    assert code == 2
    assert err.startswith("error: nowhere is no failed update. A run keeps updates that were not finite in RUN/debug/")
    Path("run/debug/update-000000124-1").mkdir(parents=True)
    for near in ("run", "run/debug", "run/debug/update-000000124-2"):
        assert "There is: run/debug/update-000000124-1" in rl4sys("replay-update", near).err

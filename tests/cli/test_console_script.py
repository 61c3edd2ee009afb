"""The installed command, which unlike `python -m` does not look for modules in the current directory by itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml

from experiments.runs import PPO, values

POLE = """
from gymnasium.envs.classic_control import CartPoleEnv

class Pole(CartPoleEnv):
    taken = 0

    def step(self, action):
        self.taken += 1
        {line}
        return super().step(action)
"""


def console(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command as it is installed, in a process of its own."""
    script = Path(sys.executable).with_name("rl4sys")
    return subprocess.run([script, *arguments], cwd=cwd, capture_output=True, text=True, timeout=120)


def test_a_repaired_environment_in_the_current_directory_is_the_one_that_is_resumed(tmp_path: Path) -> None:
    module = tmp_path / "own_console_pole.py"
    module.write_text(POLE.format(line="if self.taken > 900: raise RuntimeError('broken')"))
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(values(PPO, Path("runs"))))
    settings = ("environment.name=own_console_pole:Pole", "training.total_timesteps=2000")
    broken = console("train", "own.yaml", *settings, cwd=tmp_path)
    assert "RuntimeError: broken, at " in broken.stderr
    module.write_text(POLE.format(line="pass"))
    resumed = console("resume", "last", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert f"not exact: {module} was changed" in resumed.stderr

"""Runs without ranks do not touch torch.distributed.

`import torch` loads that package in some versions of torch, so what is checked is that RL4Sys neither imports its own
module on top of it nor starts a process group.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import rl4sys

SOURCE = Path(rl4sys.__file__).parent
PROGRAM = """
import sys, tempfile
import torch
from rl4sys.cli import commands, local_training
from rl4sys.experiments import Run, load_experiment
values = {"algorithm": {"name": "ppo"}, "environment": {"name": "CartPole-v1", "num_envs": 2}, "buffer": {"size": 32},
          "training": {"total_timesteps": 64, "ranks": int(sys.argv[1])}, "logging": {"tensorboard": False}}
Run.create(load_experiment(values, {"directory": tempfile.mkdtemp()})).train()
assert "rl4sys.experiments.ranks.rank_group" not in sys.modules
assert not torch.distributed.is_initialized()
"""


def test_a_run_in_one_process_starts_no_process_group() -> None:
    for ranks in ("1", "2"):
        ended = subprocess.run([sys.executable, "-c", PROGRAM, ranks], capture_output=True, text=True, timeout=120)
        assert ended.returncode == 0, ended.stderr


def test_one_module_imports_torch_distributed() -> None:
    importing = {path.name for path in SOURCE.rglob("*.py") if "torch.distributed" in set(imported(path))}
    assert importing == {"rank_group.py"}


def imported(path: Path) -> list[str]:
    """The modules that a file imports."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found

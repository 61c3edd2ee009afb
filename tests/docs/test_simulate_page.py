from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from policy.specs import weights_for
from rl4sys.experience import ArraySpec
from rl4sys.policy import DiscreteAction, Head, PolicySpec, PortablePolicy, ProgramBuilder

from .documents import ROOT, blocks

PAGE = ROOT / "docs" / "simulate.md"


def test_the_python_acts_with_an_exported_policy(tmp_path: Path) -> None:
    builder = ProgramBuilder((ArraySpec("observation", "float32", (4,)),))
    scores = builder.linear(builder.features(standardize=True), 2, "actor")
    spec = PolicySpec(DiscreteAction(2), builder.program(), Head("deterministic", (scores,)))
    PortablePolicy(spec, spec, weights_for(spec), 0, 0).write(tmp_path / "cartpole.rl4sys")
    (block,) = blocks(PAGE, "python")
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() in ("[0]", "[1]")

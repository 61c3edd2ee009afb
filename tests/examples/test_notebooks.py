"""The code cells of the notebooks run, with fewer steps than a reader takes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def program(notebook: Path, steps: int) -> str:
    """All code cells as one program."""
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return re.sub(r"^STEPS = .*$", f"STEPS = {steps}", "\n\n".join(code), flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_cells_of_a_notebook_run(notebook: Path, tmp_path: Path) -> None:
    text = program(notebook, steps=2_048)
    ended = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_output(notebook: Path) -> None:
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    assert not [cell for cell in cells if cell["cell_type"] == "code" and cell["outputs"]]

"""The examples and statements of docs/sweeps.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.documents import ROOT, blocks, files
from rl4sys.config import Config
from rl4sys.laboratory.studies.config import PrunerSection, TuneConfig
from rl4sys.laboratory.sweeps.plan import RandomSection, SweepConfig, plan
from rl4sys.laboratory.trials.config import load_many_trials

PAGE = ROOT / "docs" / "sweeps.md"


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files of the page, in a directory of their own."""
    for name, text in files(PAGE):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), [("my_sweep.yaml", 18), ("random_sweep.yaml", 40)])
def test_the_sweeps_have_as_many_trials_as_the_page_says(shown: Path, name: str, count: int) -> None:
    assert len(plan(load_many_trials(SweepConfig, name, "sweeps", {}))) == count
    assert f"{count} trials" in PAGE.read_text()


def test_the_study_fits_its_base(shown: Path) -> None:
    config = load_many_trials(TuneConfig, "my_study.yaml", "tuning", {})
    values = {"network.actor.hidden_dims": [256, 256], "algorithm.lr": 1e-3}
    assert list(config.experiment(values).model_dump()["network"]["critic"]["hidden_dims"]) == [256, 256]
    assert config.ranges().keys() >= values.keys()


@pytest.mark.slow
def test_the_python_of_the_page_works(shown: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks(PAGE, "python")
    exec(compile(code, str(PAGE), "exec"), {})  # noqa: S102
    assert capsys.readouterr().out == "18 lr=0.0001 hidden_dims=64x64, seed 0\n"


@pytest.mark.parametrize("config_type", [SweepConfig, RandomSection, TuneConfig, PrunerSection])
def test_every_key_is_explained(config_type: type[Config]) -> None:
    text = PAGE.read_text()
    for name in config_type.model_fields:
        assert re.search(rf"[`.{{ ]{name}[`:,]", text), name

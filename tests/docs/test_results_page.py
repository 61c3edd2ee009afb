"""The scores on the page of results are those on the pages of the algorithms."""

from __future__ import annotations

import re

import pytest

from rl4sys.experiments import packaged_configs

from .documents import ROOT

PAGE = ROOT / "docs" / "results" / "README.md"
ROWS = re.findall(
    r"^\| \[[^]]+\]\(([^)]+)\)[^|]*\| ([^|]+) \| [^|]+ \| ([^|]+) \|", PAGE.read_text("utf-8"), re.MULTILINE
)


@pytest.mark.parametrize(("page", "config", "scores"), ROWS, ids=[f"{config}" for _, config, _ in ROWS])
def test_the_scores_are_those_of_the_algorithm(page: str, config: str, scores: str) -> None:
    assert scores in (PAGE.parent / page).read_text("utf-8")
    if config.startswith("`"):
        assert (packaged_configs() / "experiments" / config.strip("`")).is_file()


def test_there_are_scores() -> None:
    assert len(ROWS) > 10

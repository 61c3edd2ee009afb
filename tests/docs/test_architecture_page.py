"""The layers on the architecture page are those that import-linter enforces."""

from __future__ import annotations

import re
import tomllib

from .documents import ROOT


def test_the_table_of_layers_is_that_of_import_linter() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    section = (ROOT / "docs" / "architecture.md").read_text("utf-8").split("## Layers")[1]
    table = next(part for part in section.split("\n\n") if part.startswith("| package |"))
    rows = re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == [
        set(re.findall(r"rl4sys\.(\w+)", row)) for row in layers
    ]


def test_every_package_is_in_a_layer() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    source = ROOT / "src" / "rl4sys"
    modules = {path.stem for path in source.glob("*.py")} | {path.parent.name for path in source.glob("*/__init__.py")}
    assert {name for name in modules - {"__init__", "__main__", "version"} if f"`{name}`" not in page} == set()


def test_every_subpackage_is_on_the_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    subpackages = {path.parent.name for path in (ROOT / "src" / "rl4sys").glob("*/*/__init__.py")} - {"generated"}
    assert subpackages
    assert {name for name in subpackages if f"`{name}`" not in page} == set()

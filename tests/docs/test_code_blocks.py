"""Every fenced block is checked against what would read it, or marked with the reason why it is not."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from rl4sys.config import Registry
from rl4sys.experiments import load_entry_points

from .code_blocks import BLOCKS, CodeBlock, blocks_of, to_check
from .config_blocks import check_config
from .documents import ROOT, files
from .python_blocks import check_python
from .shell_commands import check_command, commands_of

SYSTEM = """\
#include <rl4sys/agent.hpp>
std::vector<std::vector<float>> observations();
double latency(std::int64_t);
"""
"""What the fragment in the README takes from the reader's system."""
CHECKED = ("sh", "bash", "python", "yaml", "json", "toml", "cpp", "c")


def _place(block: CodeBlock) -> str:
    return block.place


def test_every_block_names_a_language_that_is_checked_or_is_marked() -> None:
    """A block of `text` is output or a drawing: there is nothing to run."""
    unchecked = [block for block in BLOCKS if block.language not in (*CHECKED, "text") and not block.reason]
    assert [f"{block.place}: '{block.language}'" for block in unchecked] == []


def test_a_marker_belongs_to_the_next_block_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- not run: a reason -->\n```sh\nfirst\n```\n\n<!-- a note -->\n```sh\nsecond\n```\n")
    assert [block.reason for block in blocks_of(page)] == ["a reason", ""]
    page.write_text(
        "<!-- not run: a reason\nin two lines -->\n\n```sh\nfirst\n```\n<!-- other -->\n```sh\nsecond\n```\n"
    )
    assert [block.reason for block in blocks_of(page)] == ["a reason\nin two lines", ""]


@pytest.mark.parametrize("block", to_check("sh", "bash"), ids=_place)
def test_every_shell_command_is_accepted(block: CodeBlock) -> None:
    syntax = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
    assert syntax.returncode == 0, syntax.stderr
    shown = frozenset(name for name, _ in files(block.page))
    for words in commands_of(block.text):
        check_command(words, shown)


@pytest.mark.parametrize("block", to_check("yaml", "json"), ids=_place)
def test_every_config_is_valid(block: CodeBlock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "reinforce.py").symlink_to(ROOT / "examples" / "own_algorithm" / "reinforce.py")
    monkeypatch.chdir(tmp_path)
    values = yaml.safe_load(block.text) if block.language == "yaml" else json.loads(block.text)
    assert isinstance(values, dict)
    check_config(block.text, values, tmp_path)


@pytest.mark.parametrize("block", to_check("toml"), ids=_place)
def test_every_entry_point_has_a_group_that_is_read(block: CodeBlock, monkeypatch: pytest.MonkeyPatch) -> None:
    read: set[str] = set()
    monkeypatch.setattr(Registry, "load_entry_points", lambda _, group: read.add(group))
    load_entry_points()
    assert tomllib.loads(block.text)["project"]["entry-points"].keys() <= read


@pytest.mark.parametrize("block", to_check("python"), ids=_place)
def test_every_python_block_compiles_and_its_names_exist(block: CodeBlock) -> None:
    check_python(block.text, {Path(name).stem for name, _ in files(block.page)})


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("block", to_check("cpp", "c"), ids=_place)
def test_every_cpp_block_compiles(block: CodeBlock, tmp_path: Path) -> None:
    is_whole = re.search(r"^#include", block.text, re.MULTILINE) is not None
    source = tmp_path / f"block.{block.language}"
    source.write_text(block.text if is_whole else f"{SYSTEM}int main() {{\n{block.text}}}\n")
    compiler = ["g++", "-std=c++17"] if block.language == "cpp" else ["gcc", "-std=c11"]
    options = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "cpp" / "include", source]

    compiled = subprocess.run([*compiler, *options], capture_output=True, text=True)

    assert compiled.returncode == 0, compiled.stderr

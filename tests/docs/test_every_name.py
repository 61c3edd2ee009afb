"""Every option, exit code, environment variable and setting of clients occurs on the pages."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from rl4sys.cli import exit_codes
from rl4sys.client.client_settings import ClientSettings

from .documents import ROOT, missing, page_text

SOURCES = sorted((ROOT / "src" / "rl4sys").rglob("*.py"))


@pytest.mark.parametrize("page", ["command_line", "laboratory"])
def test_every_exit_code_is_explained(page: str) -> None:
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    explained = page_text(page).partition("## Exit codes")[2]
    assert {int(code) for code in re.findall(r"^\| (\d+) \|", explained, re.MULTILINE)} == codes | {0}


def variables() -> Iterator[str]:
    """Names of environment variables that the package reads or sets."""
    for path in SOURCES:
        text = path.read_text("utf-8")
        if "os.environ" not in text and "from_environment" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]*)+", str(node.value)):
                yield str(node.value)


def test_every_environment_variable_is_explained() -> None:
    of_http = {"HTTP_AUTHORIZATION", "PATH_INFO", "REMOTE_ADDR", "REQUEST_METHOD"}
    read = set(variables()) - of_http
    assert {"RL4SYS_PROFILE", "MUJOCO_GL", "MASTER_ADDR"} <= read
    assert missing(read, page_text("command_line")) == []


def test_every_key_of_a_client_is_explained() -> None:
    # `parameters` is what stands beside the name in `algorithm`, `action_structure` what `action` is parsed into.
    keys = {field for field in ClientSettings.__dataclass_fields__ if field not in ("parameters", "action_structure")}
    assert missing(keys, page_text("client")) == []


def test_every_option_has_a_help() -> None:
    # In a process of its own, where the modules that build the site can be imported.
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from command_line import leaf_commands\n"
        "for name, command in leaf_commands():\n"
        "    for option in command.params:\n"
        "        if not getattr(option, 'hidden', False) and not getattr(option, 'help', None):\n"
        "            print(name, option.name)\n"
    )
    command = [sys.executable, "-c", program, str(ROOT / "docs" / "site")]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stdout) == (0, ""), found.stderr

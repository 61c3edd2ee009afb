"""`docs/client.md` lists every setting and health field, and its first lines of code run."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from rl4sys.client import ClientSettings, Health
from rl4sys.client.original_parameters import DQN_NAMES, PPO_NAMES
from rl4sys.records import Overflow
from rl4sys.wire import RefusalReason

from .processes import start

GUIDE = Path(__file__).parents[2] / "docs" / "client.md"
TEXT = GUIDE.read_text("utf-8")


def quoted(section: str) -> set[str]:
    """Names in backquotes in the part of the guide below a heading."""
    part = re.split(r"^## ", TEXT.split(f"\n## {section}\n")[1], flags=re.MULTILINE)[0]
    return {word for quote in re.findall(r"`([^`]+)`", part) for word in re.split(r"[.:\s]", quote)}


def test_every_setting_has_a_docstring() -> None:
    assert {field.name for field in dataclasses.fields(ClientSettings)} <= quoted("Settings")


def test_the_defaults_are_those_of_the_settings() -> None:
    said = dict(re.findall(r"^\| `(\w+)` \| `([^`]+)` \|", TEXT, flags=re.MULTILINE))
    defaults = {field.name: field.default for field in dataclasses.fields(ClientSettings)}
    checked = said.keys() & defaults.keys()
    assert len(checked) >= 7
    for name in checked:
        assert said[name] == str(defaults[name]).lower().removesuffix(".0"), name


def test_every_field_of_health_and_every_reason_for_a_drop_is_explained() -> None:
    explained = quoted("Health")
    assert {field.name for field in dataclasses.fields(Health)} <= explained
    assert {reason.name.lower() for reason in RefusalReason} <= explained


def test_every_overflow_policy_is_explained() -> None:
    assert set(Overflow) <= quoted("When the server is unreachable")


def test_the_table_of_original_names_maps_to_names_that_exist() -> None:
    rows = re.findall(r"^\| .* \| `algorithm\.(\w+)`", TEXT.split("## The original style")[1], flags=re.MULTILINE)
    assert len(rows) >= 4
    assert set(rows) <= {"name", *PPO_NAMES, *DQN_NAMES}


@pytest.mark.slow
def test_the_first_lines_of_the_guide_run(tmp_path: Path) -> None:
    program = tmp_path / "five_lines.py"
    first = re.findall(r"^```python\n(.*?)^```$", TEXT, flags=re.MULTILINE | re.DOTALL)[0]
    serve = ("-m", "rl4sys.cli", "serve", "--listen", "127.0.0.1:0", "--data", tmp_path / "data")
    with start(*serve, temporary=tmp_path) as server:
        assert server.stdout is not None
        port = server.stdout.readline().split()[1]
        program_text = first.replace("127.0.0.1:50051", f"127.0.0.1:{port}").replace(
            '"action": 4', '"action": 4, "timeout": 90'
        )
        program.write_text(program_text + "print(choice, agent.health().acknowledged, agent.health().drops)\n")
        with start(program, temporary=tmp_path) as client:
            said, _ = client.communicate(timeout=120)
        server.terminate()
        assert server.wait(timeout=30) == 0
    assert re.fullmatch(r"[0-3] 1 \{\}\n", said)

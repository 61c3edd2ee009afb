from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.cli.commands import Here

from rl4sys.server.access.tokens import TokenFile


def test_a_new_token_and_its_line_let_an_operator_in(rl4sys: Here, tmp_path: Path) -> None:
    made = rl4sys("token", "new", "--role", "operator", "--name", "alice")
    (tmp_path / "tokens").write_text(made.err.splitlines()[-1] + "\n")
    caller = TokenFile(tmp_path / "tokens").authenticate([("authorization", f"Bearer {made.out.strip()}")], "")
    assert (made.code, caller.role, caller.who) == (0, "operator", "alice")
    assert made.out.strip() not in made.err


def test_the_hash_of_a_token_is_that_of_its_line(rl4sys: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    made = json.loads(rl4sys("token", "new", "lander-*", "--json").out)
    monkeypatch.setattr("sys.stdin", io.StringIO(made["token"] + "\n"))
    assert made["line"] == f"{rl4sys('token', 'hash').out.strip()} lander-*"


def test_a_client_without_client_ids_is_refused(rl4sys: Here) -> None:
    made = rl4sys("token", "new")
    assert made.code == 2
    assert "such as 'lander-*'" in made.err

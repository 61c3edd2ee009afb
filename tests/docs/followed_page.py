"""Follows a page as a reader does: writes the files that it shows, runs its programs and commands in their order."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.faults.processes import Server

from .code_blocks import CodeBlock, blocks_of
from .documents import files
from .shell_commands import commands_of

_ASKS_A_SERVER = {"learners", "control", "status"}


def follow(page: Path, place: Path, changes: Mapping[str, str]) -> Iterator[tuple[list[str], str]]:
    """What every command of a page prints, and its words; a program of the page is `["python"]`.

    `changes` are parts of the page with what replaces them: fewer steps than a reader takes. A server, if the page
    starts one, listens on a port of its own. A command that fails raises, with its output.
    """
    text = page.read_text("utf-8")
    missing = [part for part in changes if part not in text]
    assert missing == [], f"{page.name} no longer has {missing}"
    server = Server(place)
    try:
        for block in blocks_of(page):
            if not block.reason and block.language in ("python", "sh", "bash"):
                yield from _run(block, _changed(block.text, changes), dict(files(page)), place, server)
    finally:
        server.close()


def _changed(text: str, changes: Mapping[str, str]) -> str:
    for part, replacement in changes.items():
        text = text.replace(part, replacement)
    return text


def _run(
    block: CodeBlock, text: str, shown: Mapping[str, str], place: Path, server: Server
) -> Iterator[tuple[list[str], str]]:
    name = next((name for name, source in shown.items() if source == block.text), None)
    if name is not None:
        address = f'"client_id": name,\n    "server": "{server.address}",'
        (place / name).write_text(text.replace('"client_id": name,', address))
    elif block.language == "python":
        yield ["python"], _output([sys.executable, "-c", text], place)
    else:
        for words in commands_of(text):
            if words == ["rl4sys", "serve"]:
                server.start()
            else:
                yield words, _output(_command(words, server.address), place)


def _command(words: list[str], address: str) -> list[str]:
    if words[0] == "python":
        return [sys.executable, *words[1:]]
    assert words[0] == "rl4sys", f"no test knows how to run {words[0]}"
    asked = ["--server", address] if words[1] in _ASKS_A_SERVER else []
    return [sys.executable, "-m", "rl4sys", *words[1:], *asked]


def _output(command: list[str], place: Path) -> str:
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout

"""The app with all commands, for tests and for tools that write documentation."""

from __future__ import annotations

from rl4sys.cli.commands import build

app = build()

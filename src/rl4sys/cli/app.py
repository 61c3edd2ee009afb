"""All commands in one, for what looks at them as a whole, such as tests and tools that write documentation."""

from __future__ import annotations

from rl4sys.cli.commands import build

app = build()

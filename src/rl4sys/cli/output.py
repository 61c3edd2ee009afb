"""Where the command line writes: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
from typing import Any

from rich.console import Console

console = Console()
errors = Console(stderr=True)


def print_json(value: Any) -> None:
    """One JSON document for scripts: no colours, no wrapping."""
    console.file.write(json.dumps(value, indent=1) + "\n")

"""Names that clients choose, which become parts of paths, logs and metrics."""

from __future__ import annotations

import re

from rl4sys.wire.errors import ContractViolation

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}")


def require_name(what: str, name: str) -> str:
    """The name, if it is safe in paths and logs; `what` it names is for the error."""
    if _NAME.fullmatch(name) is None:
        shown = name if len(name) <= 64 else name[:64] + "…"
        raise ContractViolation(
            f"{what} is {shown!r}; expected 1 to 128 letters (A-Z, a-z), digits, dots, underscores or hyphens, "
            f"and no leading dot. Choose another name."
        )
    return name

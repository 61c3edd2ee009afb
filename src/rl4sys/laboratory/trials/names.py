"""Names of trials: short names of settings, readable values and stable directory names."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any


def label(changes: Mapping[str, Any]) -> str:
    """The changes of a trial as text: `lr=0.001 hidden_dims=64x64`."""
    names = short_names(list(changes))
    return " ".join(f"{names[key]}={shown(value)}" for key, value in changes.items())


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """The shortest unique ends of dotted keys."""
    names = {}
    for key in keys:
        parts = key.split(".")
        ends = (".".join(parts[-count:]) for count in range(1, len(parts)))
        others = [f".{other}" for other in keys if other != key]
        names[key] = next((end for end in ends if not any(other.endswith(f".{end}") for other in others)), key)
    return names


def shown(value: Any) -> str:
    """A value in a few characters."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return "x".join(shown(item) for item in value)
    if isinstance(value, Mapping):
        return ",".join(f"{key}:{shown(item)}" for key, item in value.items())
    return str(value)


def slug(text: str) -> str:
    """A text that can be part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.=,+-]+", "-", text)[:80].strip("-")


def key_of(text: str, identity: Any) -> str:
    """A readable directory name that depends only on the configuration, so that a trial is found again."""
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return f"{slug(text)}-{digest[:8]}"

"""What trials are called: short names of settings, readable values, and places that are found again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any


def label(changes: Mapping[str, Any]) -> str:
    """What is special about a trial, for people: `lr=0.001 hidden_dims=64x64`."""
    names = short_names(list(changes))
    return " ".join(f"{names[key]}={shown(value)}" for key, value in changes.items())


def short_names(keys: Sequence[str]) -> dict[str, str]:
    """The ends of dotted keys, as much of each as tells it from the others."""
    names = {}
    for key in keys:
        parts = key.split(".")
        ends = (".".join(parts[-count:]) for count in range(1, len(parts)))
        others = [f".{other}" for other in keys if other != key]
        names[key] = next((end for end in ends if not any(other.endswith(f".{end}") for other in others)), key)
    return names


def shown(value: Any) -> str:
    """A value in few letters."""
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
    """A text as a part of a file name."""
    return re.sub(r"[^A-Za-z0-9_.=,+-]+", "-", text)[:80].strip("-")


def key_of(text: str, identity: Any) -> str:
    """A name for a trial's place that is readable, and the same whenever the same is to be tried."""
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    return f"{slug(text)}-{digest[:8]}"

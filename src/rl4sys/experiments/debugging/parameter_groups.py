"""Finds what an algorithm trains, and with what, by looking at its parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from rl4sys.networks import Accumulation, FlatAdam, Parameters

_DEPTH = 3
_OURS = "rl4sys."
Part = TypeVar("Part")


def parameter_groups(algorithm: object) -> dict[str, Parameters]:
    """Every set of parameters by a name that says whose they are: `policy`, `critics`, `critics.targets`, …"""
    return {_named(path, "parameters", "policy"): part for path, part in _parts(algorithm, Parameters)}


def optimizers(algorithm: object) -> dict[str, FlatAdam]:
    """Every optimizer, named in the same way."""
    return {_named(path, "adam", "policy"): part for path, part in _parts(algorithm, FlatAdam)}


def accumulations(algorithm: object) -> list[Accumulation]:
    """Whatever takes batches in parts when memory is short."""
    return [part for _, part in _parts(algorithm, Accumulation)]


def _named(path: tuple[str, ...], usual: str, first: str) -> str:
    """The path without what goes without saying."""
    kept = [name.strip("_") for name in path]
    if kept[-1] == usual:
        kept.pop()
    return ".".join(kept) or first


def _parts(owner: object, kind: type[Part]) -> Iterator[tuple[tuple[str, ...], Part]]:
    """All parts of a kind with the attributes that lead there; each once, by its shortest way."""
    seen: set[int] = {id(owner)}
    level: list[tuple[tuple[str, ...], object]] = [((), owner)]
    for _ in range(_DEPTH):
        following: list[tuple[tuple[str, ...], object]] = []
        for path, holder in level:
            for name, part in getattr(holder, "__dict__", {}).items():
                if id(part) in seen:
                    continue
                seen.add(id(part))
                if isinstance(part, kind):
                    yield (*path, name), part
                elif hasattr(part, "__dict__") and not isinstance(part, type | Parameters | FlatAdam):
                    following.append(((*path, name), part))
        level = following

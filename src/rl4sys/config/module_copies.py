"""Copies of modules that a config names as `module:Name`, so that a run can be used where these modules are not."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rl4sys.atomic_files import write_durably
from rl4sys.run_files import PLUGINS

_MODULES = "modules"
_NAMED = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_][\w.-]*")


def write_module_copies(directory: Path, values: Mapping[str, Any]) -> None:
    """Copy the files of all modules that the values of a config name; installed packages are left out."""
    for file in sorted({file for text in _texts(values) for file in _files_of(text)}):
        place = directory / PLUGINS / _MODULES
        place.mkdir(parents=True, exist_ok=True)
        write_durably(place / file.name, file.read_bytes())


def use_module_copies(directory: Path) -> None:
    """From now on, import a module from the copies in a run if it is nowhere else."""
    place = (directory / PLUGINS / _MODULES).resolve()
    if place.is_dir() and str(place) not in sys.path:
        sys.path.append(str(place))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)


def _files_of(text: str) -> Iterator[Path]:
    """The file of the module that a text names, if it is a single file of the user's own."""
    named = _NAMED.fullmatch(text)
    if named is None or "." in named[1]:
        return
    try:
        found = importlib.util.find_spec(named[1])
    except (ImportError, ValueError):
        return
    if found is None or not found.has_location or found.submodule_search_locations is not None:
        return
    file = Path(str(found.origin)).resolve()
    installed = (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
    if file.suffix == ".py" and not any(place in file.parents for place in installed):
        yield file

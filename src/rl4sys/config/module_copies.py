"""Copies of modules and packages that a config names, so that a run can be used where these are not."""

from __future__ import annotations

import importlib.util
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rl4sys.atomic_files import write_durably
from rl4sys.config.plugins import look_in_current_directory
from rl4sys.run_files import PLUGINS

_MODULES = "modules"
_NAMED = re.compile(r"([A-Za-z_][\w.]*):[A-Za-z_][\w.-]*")
_MOST_BYTES = 16 << 20
"""Of one package; a larger one holds more than code."""
_log = logging.getLogger(__name__)


class _Own(NamedTuple):
    """A module of the user's own that is a file, or a package that is a directory."""

    place: Path

    def files(self) -> Iterator[tuple[Path, Path]]:
        """Its files, and where they belong below a directory of modules; caches and hidden files are left out."""
        if self.place.is_file():
            yield self.place, Path(self.place.name)
            return
        for file in sorted(self.place.rglob("*")):
            relative = file.relative_to(self.place.parent)
            is_left_out = any(part.startswith(".") or part == "__pycache__" for part in relative.parts)
            if file.is_file() and not is_left_out:
                yield file, relative


def write_module_copies(directory: Path, values: Mapping[str, Any]) -> None:
    """Copy the modules and packages that a config names, as `module:Name` or as plug-ins, but not installed ones."""
    named = {found[1] for text in _texts(values) if (found := _NAMED.fullmatch(text)) is not None}
    named |= {text for text in _texts(values.get("plugins", ())) if not text.endswith(".py")}
    for own in sorted({own for name in named if (own := _found(name.partition(".")[0])) is not None}):
        files = list(own.files())
        size = sum(file.stat().st_size for file, _ in files)
        if size > _MOST_BYTES:
            _log.warning(
                "%s has %d MB and is not copied into the run (at most %d MB are): where the run is used, it must be "
                "importable. Keep data outside of the package.",
                *(own.place, size >> 20, _MOST_BYTES >> 20),
            )
            continue
        for file, relative in files:
            copy = directory / PLUGINS / _MODULES / relative
            copy.parent.mkdir(parents=True, exist_ok=True)
            write_durably(copy, file.read_bytes())


def use_module_copies(directory: Path) -> None:
    """From now on, import a module from the copies in a run if it is nowhere else, nor in the current directory."""
    place = (directory / PLUGINS / _MODULES).resolve()
    if place.is_dir() and str(place) not in sys.path:
        # The command line, unlike `python`, does not look there, and would find only the copy.
        look_in_current_directory()
        sys.path.append(str(place))


def changed_modules(directory: Path) -> list[str]:
    """The modules and packages that were copied into a run, and whose originals have changed since."""
    copies = (directory / PLUGINS / _MODULES).resolve()
    names = sorted({place.stem for place in copies.iterdir()}) if copies.is_dir() else []
    originals = {name: own.place for name in names if (own := _found(name)) is not None}
    return [
        str(place)
        for name, place in originals.items()
        if copies not in place.parents and _contents(_Own(place)) != _contents(_Own(copies / place.name))
    ]


def _contents(own: _Own) -> dict[Path, bytes]:
    return {relative: file.read_bytes() for file, relative in own.files()}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, Sequence):
        for part in value:
            yield from _texts(part)


def _found(name: str) -> _Own | None:
    """The module or package of this name, if it is the user's own: neither installed nor compiled."""
    try:
        found = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    if found is None:
        return None
    if found.submodule_search_locations is not None:
        places = list(found.submodule_search_locations)
        # A package that lies in several places has no directory to copy.
        place = Path(places[0]).resolve() if len(places) == 1 else None
    else:
        place = Path(str(found.origin)).resolve() if found.has_location else None
    if place is None or not (place.is_dir() or place.suffix == ".py"):
        return None
    installed = (Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve(), Path(__file__).resolve().parents[1])
    return None if any(root == place or root in place.parents for root in installed) else _Own(place)

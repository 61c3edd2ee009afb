"""Loads plug-ins: Python files and modules of the user that register components."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

from rl4sys.config.errors import ConfigError
from rl4sys.suggestions import did_you_mean

_COPIES: dict[str, Path] = {}
"""Copies of plug-in files, by the paths of the originals on the machine where the run began."""


def load_plugins(plugins: Iterable[str | Path], relative_to: Path) -> tuple[ModuleType, ...]:
    """Import each plug-in once: a file (`own/algorithm.py`, beside the config) or a module (`lab.own`)."""
    return tuple(_load(str(plugin), relative_to) for plugin in plugins)


def plugin_hashes(plugins: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each plug-in that is a file, by its path: a changed file may learn differently."""
    files = {plugin: located(plugin) for plugin in plugins if plugin.endswith(".py")}
    return {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if path.is_file()}


def use_copies(copies: Mapping[str, Path]) -> None:
    """From now on, load a copy in place of each plug-in file that is not on this machine."""
    _COPIES.update(copies)


def located(plugin: str | Path) -> Path:
    """The file of a plug-in, or the copy that stands for it here."""
    path = Path(plugin)
    return path if path.is_file() else _COPIES.get(str(plugin), path)


def imported_module(name: str) -> ModuleType:
    """The module of this name, which may lie in the current directory."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # The command line, unlike `python`, does not look for modules in the current directory.
        if error.name != name.partition(".")[0] or not look_in_current_directory():
            raise
        return importlib.import_module(name)


def look_in_current_directory() -> bool:
    """From now on, look for modules in the current directory too; false if they were looked for there already."""
    here = str(Path.cwd())
    if here in sys.path:
        return False
    sys.path.append(here)
    return True


def _load(plugin: str, relative_to: Path) -> ModuleType:
    is_file = plugin.endswith(".py") or "/" in plugin
    try:
        return _run_file((relative_to / Path(plugin).expanduser()).resolve()) if is_file else imported_module(plugin)
    except ConfigError:
        raise
    except Exception as error:  # whatever a user's own code raises
        message = f"The plug-in '{plugin}' cannot be loaded: {type(error).__name__}: {error}"
        if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "rl4sys":
            message += ". Since version 0.2 algorithms are written in another way; docs/own_algorithm.md shows how."
        raise ConfigError(message) from error


def _run_file(path: Path) -> ModuleType:
    path = located(path)
    # The name follows from the place: two files of one name do not meet, and one file is not run twice.
    name = f"rl4sys_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        others = [other.name for other in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise ConfigError(f"There is no plug-in file {path}{did_you_mean(path.name, others)}")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"The plug-in {path} is not a Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

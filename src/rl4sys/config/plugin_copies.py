"""Copies of plug-in files: in a run, so that it can be resumed anywhere, and in a launch, to create it elsewhere."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from rl4sys.atomic_files import write_durably
from rl4sys.config.plugins import located
from rl4sys.run_files import MANIFEST, PLUGINS, is_run, read_json


def plugin_texts(plugins: Sequence[str]) -> dict[str, str]:
    """The text of each plug-in that is a file, by its path here."""
    return {name: located(name).read_text() for name in plugins if name.endswith(".py") and located(name).is_file()}


def write_copies(directory: Path, texts: Mapping[str, str]) -> dict[str, Path]:
    """Write plug-ins below a directory; returns the copies by the paths of the originals."""
    copies = {}
    for name, text in texts.items():
        copy = directory / PLUGINS / _copy_name(name, hashlib.sha256(text.encode()).hexdigest())
        copy.parent.mkdir(parents=True, exist_ok=True)
        write_durably(copy, text.encode())
        copies[name] = copy
    return copies


def copies_in(directory: Path) -> dict[str, Path]:
    """The copies in a run directory, by the paths of the originals; none if it is no run, or an old one."""
    if not (directory / PLUGINS).is_dir() or not is_run(directory):
        return {}
    hashes: Mapping[str, str] = read_json(directory / MANIFEST).get("plugins", {})
    found = {name: (directory / PLUGINS / _copy_name(name, sha)).resolve() for name, sha in hashes.items()}
    return {name: path for name, path in found.items() if path.is_file()}


def _copy_name(path: str, sha: str) -> str:
    """Two plug-ins of one name do not meet, since the name begins with the hash."""
    return f"{sha[:8]}-{Path(path).name}"

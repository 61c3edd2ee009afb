"""The files of one checkpoint: a state as JSON and safetensors, and a manifest with their lengths and hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from rl4sys.atomic_files import write_durably
from rl4sys.state import State, join, split

_FORMAT = 1

Chunk: TypeAlias = Mapping[str, Any]
"""A file of replayed rows: its name, its first id, one past its last, its length and SHA-256."""


class CheckpointDamaged(ValueError):
    """A checkpoint is incomplete or its bytes are not those that were written."""


class CheckpointContents(NamedTuple):
    """What a checkpoint holds; the rows of a replay buffer lie beside it, in chunks."""

    step: int
    state: State
    chunks: tuple[Chunk, ...]


def write_checkpoint(directory: Path, contents: CheckpointContents) -> None:
    """Write the files of a checkpoint into an empty directory, the manifest last."""
    tree, arrays = split(contents.state)
    files = {
        "state.json": json.dumps(tree).encode(),
        "arrays.safetensors": save_tensors({name: np.asarray(array, order="C") for name, array in arrays.items()}),
    }
    manifest = {
        "format": _FORMAT,
        "step": contents.step,
        "files": {name: checks_of(data) for name, data in files.items()},
        "replay": [dict(chunk) for chunk in contents.chunks],
    }
    for name, data in files.items():
        write_durably(directory / name, data)
    sealed = {"sha256": _seal(manifest), "manifest": manifest}
    write_durably(directory / "manifest.json", json.dumps(sealed, indent=1).encode())


def read_checkpoint(directory: Path) -> CheckpointContents:
    """Read a checkpoint back, or raise `CheckpointDamaged` when any byte is not as it was written."""
    step, files, chunks = read_manifest(directory)
    data = {name: _bytes_of(directory / name) for name in files}
    for name, content in data.items():
        _require_written(directory, name, content, files[name])
    return CheckpointContents(
        step, join(json.loads(data["state.json"]), load_tensors(data["arrays.safetensors"])), chunks
    )


def verify_files(directory: Path) -> tuple[Chunk, ...]:
    """The chunks of replayed rows of a checkpoint, or `CheckpointDamaged` if a byte of its files is not as written."""
    _, files, chunks = read_manifest(directory)
    for name in files:
        _require_written(directory, name, _bytes_of(directory / name), files[name])
    return chunks


def read_manifest(directory: Path) -> tuple[int, Mapping[str, Any], tuple[Chunk, ...]]:
    """The step of a checkpoint, the checks of its files, and its chunks of replayed rows."""
    raw = _bytes_of(directory / "manifest.json")
    try:
        sealed = json.loads(raw)
        manifest = sealed["manifest"]
        if sealed["sha256"] != _seal(manifest):
            raise CheckpointDamaged(f"{directory.name}: manifest.json is not what was written (SHA-256 differs)")
        if manifest["format"] != _FORMAT:
            raise CheckpointDamaged(
                f"{directory.name}: format {manifest['format']} is not {_FORMAT}; resume with the version that wrote it"
            )
        return manifest["step"], manifest["files"], tuple(manifest["replay"])
    except (ValueError, KeyError, TypeError) as error:
        if isinstance(error, CheckpointDamaged):
            raise
        raise CheckpointDamaged(f"{directory.name}: manifest.json is not what was written ({error})") from error


def checks_of(data: bytes) -> dict[str, Any]:
    """Length and SHA-256 of some bytes."""
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _require_written(directory: Path, name: str, content: bytes, checks: Mapping[str, Any]) -> None:
    if checks_of(content) != checks:
        raise CheckpointDamaged(f"{directory.name}: {name} is not what was written (length or SHA-256 differs)")


def _seal(manifest: object) -> str:
    """The hash of the manifest itself: a changed number in it would load the wrong rows."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointDamaged(f"{path.parent.name}: {path.name} cannot be read ({error.strerror})") from error

"""A copy of a run that trains on with other settings."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rl4sys import run_files
from rl4sys.atomic_files import publish_directory, replace_file
from rl4sys.experiments.changed_settings import changed_settings
from rl4sys.experiments.result import Result
from rl4sys.experiments.run_directory import RunDamaged, RunDirectory

_OWN = (
    run_files.RESULT,
    run_files.PROCESS,
    run_files.LABELS,
    run_files.OUTPUT,
    run_files.PRUNED,
    run_files.ERROR,
    run_files.CURVE,
    run_files.SCRATCH,
    run_files.TENSORBOARD,
    run_files.WANDB,
    run_files.MLFLOW,
    run_files.VIDEOS,
    run_files.DEBUG,
)
"""What belongs to the original alone."""


def copy_run(source: RunDirectory, target: Path, name: str, settings: Mapping[str, Any]) -> RunDirectory:
    """Copy a run that is saved and not in use, with another name and other settings from there on.

    The copy has its metrics, episodes and checkpoints, so its curves are whole. Its manifest says which run it is a
    copy of and what has changed. `target` is there only once the copy is complete.
    """
    result = Result.read(source.result)
    if result is None:
        raise RunDamaged(f"{source.result} is missing or damaged, so it is not known where {source.path} stands.")
    step = result.steps
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = RunDirectory(target.with_name(f".{target.name}.tmp"))
    shutil.rmtree(aside.path, ignore_errors=True)
    with source.hold():
        shutil.copytree(source.path, aside.path, symlinks=True, ignore=_ignored(source.path))
    values = yaml.safe_load(aside.config.read_bytes())
    values["experiment"] |= {"name": name, "directory": str(target.parent)}
    replace_file(aside.config, yaml.safe_dump(values, sort_keys=False, allow_unicode=True).encode())
    changed = changed_settings(aside, settings)
    manifest = aside.read_manifest()
    manifest["inexact"] += [f"step {step}: {reason}" for reason in changed.reasons()]
    # With the parent of the original: the whole line of descent, even if the runs before are gone.
    manifest["parent"] = {"source": str(source.path), "step": step, "whole": True, "parent": manifest.get("parent")}
    changed.write(aside, manifest, step)
    publish_directory(aside.path, target)
    return RunDirectory(target)


def _ignored(source: Path) -> Any:
    def ignore(directory: str, names: list[str]) -> set[str]:
        return set(_OWN) & set(names) if Path(directory) == source else set()

    return ignore

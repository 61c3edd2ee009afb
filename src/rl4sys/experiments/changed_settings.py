"""Settings that are changed when a run is resumed: which may be, and how that is recorded."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from rl4sys.atomic_files import replace_file
from rl4sys.config import ConfigError, Overrides, flat
from rl4sys.config.errors import shown
from rl4sys.config.overrides import Override
from rl4sys.experiments.config import ExperimentConfig, load_experiment
from rl4sys.experiments.manifest import UNPLANNED
from rl4sys.experiments.run_directory import RunDirectory

_log = logging.getLogger(__name__)

_FIXED = (
    "config_version",
    "plugins",
    "experiment.name",
    "experiment.seed",
    "experiment.directory",
    "algorithm.name",
    "environment.name",
    "environment.num_envs",
    "network",
    "buffer.type",
    "training.ranks",
)
"""Keys, or their beginnings, that make another run."""


@dataclass(frozen=True, slots=True)
class ChangedSettings:
    """The config of a run as it is resumed, and what differs from before."""

    config: ExperimentConfig
    changes: Mapping[str, tuple[Any, Any]]
    """Old and new value by dotted key."""
    is_exact: bool
    """Whether none of them affects what is learned."""

    def reasons(self) -> list[str]:
        """Why the resumed run is not exact."""
        return [] if self.is_exact else [f"{key} was {shown(old)}, now {shown(new)}" for key, (old, new) in self._pairs]

    def write(self, directory: RunDirectory, manifest: dict[str, Any], step: int) -> None:
        """Make them the settings of the run from this step on, and note them in its manifest."""
        manifest["config"] = self.config.digest()
        settings = {key: [old, new] for key, (old, new) in self._pairs}
        manifest["changes"] = [*manifest.get("changes", []), {"step": step, "settings": settings}]
        directory.write_manifest(manifest)
        replace_file(directory.config, _as_yaml(self.config))

    @property
    def _pairs(self) -> list[tuple[str, tuple[Any, Any]]]:
        return list(self.changes.items())


def roll_back_changes(directory: RunDirectory, step: int) -> None:
    """Undo the changes of settings that were made after a step, whose history is about to be abandoned.

    The resumed run then has the settings that it had at that step, and its manifest knows no later ones.
    """
    manifest = directory.read_manifest()
    abandoned = [change for change in manifest.get("changes", []) if change["step"] > step]
    if not abandoned:
        return
    values = yaml.safe_load(directory.config.read_text())
    before: dict[str, Any] = {}
    for change in reversed(abandoned):
        before |= {key: old for key, (old, _) in change["settings"].items()}
    # Nothing stood there before, or null, which is the default of all settings that may be null.
    for key in [key for key, old in before.items() if old is None]:
        _remove(values, key.split("."))
    for key, old in before.items():
        if old is not None:
            values = Override(tuple(key.split(".")), old).applied_to(values)
    # The file before the values: it offers the copies of plug-ins that the run has.
    load_experiment(directory.config)
    config = load_experiment(values)
    manifest["changes"] = [change for change in manifest["changes"] if change["step"] <= step]
    manifest["inexact"] = [text for text in manifest["inexact"] if _step_in(text) <= step]
    manifest["config"] = config.digest()
    with directory.hold():
        replace_file(directory.config, _as_yaml(config))
        directory.write_manifest(manifest)
    _log.warning(
        "Settings that were changed after step %d are as they were: %s",
        *(step, ", ".join(f"{key}={shown(old)}" for key, old in before.items())),
    )


def _remove(values: dict[str, Any], path: Sequence[str]) -> None:
    inner = values.get(path[0])
    if len(path) == 1:
        values.pop(path[0], None)
    elif isinstance(inner, dict):
        _remove(inner, path[1:])
        if not inner:
            del values[path[0]]


def _step_in(text: str) -> int:
    """The step of a reason why a run is not exact: `step 64: …`."""
    return int(text.removeprefix("step ").partition(":")[0])


def _as_yaml(config: ExperimentConfig) -> bytes:
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True).encode()


def is_fixed(key: str) -> bool:
    """Whether a setting, given by its dotted key, cannot change within a run."""
    return any(key == fixed or key.startswith(f"{fixed}.") for fixed in _FIXED)


def changed_settings(directory: RunDirectory, overrides: Overrides) -> ChangedSettings:
    """The config of a run with overrides; those that would make another run are refused, unless it has not begun."""
    before = load_experiment(directory.config)
    if not overrides:
        return ChangedSettings(before, {}, is_exact=True)
    after = load_experiment(directory.config, overrides)
    old, new = (_by_key(config) for config in (before, after))
    changes = {key: (old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)}
    has_begun = UNPLANNED not in directory.read_manifest()
    for key in changes:
        if has_begun and is_fixed(key):
            raise ConfigError(
                f"{key} cannot change within a run. Start another one with its weights: "
                f"rl4sys train {directory.config} --from {directory.path} {key}={shown(changes[key][1])}"
            )
    return ChangedSettings(after, changes, is_exact=before.digest() == after.digest())


def _by_key(config: ExperimentConfig) -> dict[str, Any]:
    return {".".join(place): value for place, value in flat(config.model_dump(mode="json"))}

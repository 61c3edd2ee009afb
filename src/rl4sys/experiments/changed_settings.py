"""Settings that are changed when a run is resumed: which may be, and how that is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from rl4sys.atomic_files import replace_file
from rl4sys.config import ConfigError, Overrides, flat
from rl4sys.config.errors import shown
from rl4sys.experiments.config import ExperimentConfig, load_experiment
from rl4sys.experiments.run_directory import RunDirectory

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
        values = yaml.safe_dump(self.config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        replace_file(directory.config, values.encode())

    @property
    def _pairs(self) -> list[tuple[str, tuple[Any, Any]]]:
        return list(self.changes.items())


def is_fixed(key: str) -> bool:
    """Whether a setting, given by its dotted key, cannot change within a run."""
    return any(key == fixed or key.startswith(f"{fixed}.") for fixed in _FIXED)


def changed_settings(directory: RunDirectory, overrides: Overrides) -> ChangedSettings:
    """The config of a run with overrides; those that would make another run are refused."""
    before = load_experiment(directory.config)
    if not overrides:
        return ChangedSettings(before, {}, is_exact=True)
    after = load_experiment(directory.config, overrides)
    old, new = (_by_key(config) for config in (before, after))
    changes = {key: (old.get(key), new.get(key)) for key in {**old, **new} if old.get(key) != new.get(key)}
    for key in changes:
        if is_fixed(key):
            raise ConfigError(
                f"{key} cannot change within a run. Start another one with its weights: "
                f"rl4sys train {directory.config} --from {directory.path} {key}={shown(changes[key][1])}"
            )
    return ChangedSettings(after, changes, is_exact=before.digest() == after.digest())


def _by_key(config: ExperimentConfig) -> dict[str, Any]:
    return {".".join(place): value for place, value in flat(config.model_dump(mode="json"))}

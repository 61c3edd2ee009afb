"""The settings that sweeps and studies share, and how their files are loaded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from rl4sys.config import Config, ConfigError, load, migrate, packaged_configs, parse
from rl4sys.config.files import find_config, read_file
from rl4sys.config.overrides import parse_overrides
from rl4sys.experiments import ExperimentConfig
from rl4sys.experiments.config import BaseExperiment, ExperimentSection
from rl4sys.experiments.where import WhereSection

C = TypeVar("C", bound="ManyTrials")
Seed = Annotated[int, Field(ge=0)]

_IRRELEVANT = ("config_version", "experiment", "logging", "where")
"""Sections that do not affect what is learned, except for the seed."""


class ManyTrials(Config):
    """Trials that are variations of one base experiment."""

    name: str | None = Field(None, min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """The name of the sweep or study and of its directory; by default that of the file."""
    base_config: str
    """The experiment that all trials vary: beside this file, in the working directory, or shipped with RL4Sys."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Changes to the base for all trials, by dotted keys: `training.total_timesteps: 20_000`."""
    seeds: tuple[Seed, ...] | None = Field(None, min_length=1)
    """Seeds of each configuration; by default that of the base. A study trains them one after the other, and its score
    is their mean."""
    parallel_jobs: int = Field(1, ge=1)
    """Trials at the same time, each on its share of the cores. More than the number of cores gain nothing."""
    score: Literal["last", "best"] = "last"
    """The evaluation that is the score of a trial: the last one, or the best one, which favours unstable learning."""
    directory: str = "runs"
    """The parent of the directory of the sweep or study."""
    where: WhereSection = WhereSection()
    """On which machines the trials train."""

    @property
    def place(self) -> Path:
        """The directory of the sweep or study."""
        return Path(self.directory) / (self.name or "unnamed")

    def varied(self) -> Iterator[str]:
        """The keys that differ between trials, with their section: `sweep.algorithm.lr`."""
        return iter(())

    @model_validator(mode="after")
    def _refuse_what_is_set_elsewhere(self) -> Self:
        """Refuse settings that would have no effect: names, directories and seeds of trials have their own keys."""
        if self.seeds is not None and len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds: {list(self.seeds)} contains a seed twice; each trial needs its own")
        shared = [f"overrides.{'.'.join(override.path)}" for override in parse_overrides(self.overrides)]
        varied = list(self.varied())
        for given in (*shared, *varied):
            match _full_path(given.partition(".")[2]):
                case ("experiment", "name"):
                    raise ValueError(f"{given}: trials are named after the whole; use `name: …` or --name instead")
                case ("experiment", "directory"):
                    raise ValueError(f"{given}: trials are kept together; set `directory: …` at the top level instead")
                case ("experiment", "seed") if given in varied or self.seeds is not None:
                    raise ValueError(f"{given}: set `seeds: [0, 1, 2]` at the top level instead")
        tried = {_full_path(given.partition(".")[2]): given for given in varied}
        for given in shared:
            if (found := tried.get(_full_path(given.partition(".")[2]))) is not None:
                raise ValueError(f"{given}: {found} sets it for every trial; remove one of them")
        return self


def load_many_trials(
    config_type: type[C],
    file: str | Path,
    folder: str,
    changes: Mapping[str, Any],
    base: str | None = None,
    name: str | None = None,
) -> C:
    """Load a sweep or study from a file, or from a folder that ships with RL4Sys.

    Its name and the path of its base are filled in; `changes` are added to its overrides, those of `where` also to its
    own section, and `base` and `name` replace those of the file.
    """
    shipped = packaged_configs()
    path = find_config(file, Path(), (shipped, shipped / folder))
    values = read_file(path)
    values |= {key: value for key, value in (("base_config", base), ("name", name)) if value is not None}
    config = _with_changes(config_type, values, path, changes)
    reason = f"the base_config of {path}" if base is None else "given by --base"
    found = _find_base(config.base_config, path.parent if base is None else Path(), reason)
    made = path.stem if base is None else f"{path.stem}-{found.stem}"
    return config.model_copy(update={"name": config.name or made, "base_config": str(found)})


def _with_changes(config_type: type[C], values: Mapping[str, Any], path: Path, changes: Mapping[str, Any]) -> C:
    """The config of a file with changes; an error that only they cause is not blamed on the file."""
    config = parse(config_type, values, path)
    if not changes:
        return config
    where = {key.removeprefix("where."): value for key, value in changes.items() if key.startswith("where.")}
    changed = {**values, "overrides": {**config.overrides, **changes}}
    if where:
        changed["where"] = {**(values.get("where") or {}), **where}
    try:
        return parse(config_type, changed)
    except ConfigError as error:
        raise ConfigError(f"The override{'s' if len(changes) > 1 else ''} {' and '.join(changes)}: {error}") from None


def vary(base: BaseExperiment, changes: Mapping[str, Any]) -> ExperimentConfig:
    """The base experiment with changes by dotted keys."""
    return base.vary(_nested(changes))


def placed(config: ExperimentConfig, place: Path) -> ExperimentConfig:
    """The same experiment, with its run in another directory."""
    experiment = config.experiment.model_copy(update={"directory": str(place)})
    return config.model_copy(update={"experiment": experiment})


def identity_of(base: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that affect learning, of a base and its overrides: all but name, directory, seed and loggers.

    As written, without defaults, so that a release with a new setting finds the trials of an earlier one.
    """
    shipped = packaged_configs()
    written = load(base, (), (shipped, shipped / "experiments"), migrate)
    paths = {override.path: override.value for override in parse_overrides(overrides)}
    return {
        "base": {key: value for key, value in written.items() if key not in _IRRELEVANT},
        "overrides": {
            ".".join(path): value
            for path, value in paths.items()
            if path[0] not in (*_IRRELEVANT, *ExperimentSection.model_fields)
        },
    }


def parse_changes(texts: Sequence[str]) -> dict[str, Any]:
    """Parse `key=value` arguments of the command line."""
    return {".".join(override.path): override.value for override in parse_overrides(texts)}


def _nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """All changes as one nested mapping; applying them one by one takes far longer."""
    layer: dict[str, Any] = {}
    for override in parse_overrides(changes):
        *above, last = _full_path(".".join(override.path))
        inner = layer
        for part in above:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"{'.'.join(override.path)}: '{part}' is also set as a whole; set one of them.")
        inner[last] = override.value
    return layer


def _full_path(key: str) -> tuple[str, ...]:
    """`experiment.seed` for `seed`: the keys of that section may be given without its name."""
    return ("experiment", key) if key in ExperimentSection.model_fields else tuple(key.split("."))


def _find_base(name: str, beside: Path, reason: str) -> Path:
    """The file of a base: beside the file that names it, in the working directory, or one that ships with RL4Sys."""
    shipped, relative = packaged_configs(), Path(name)
    place = next((place for place in (beside, Path()) if (place / relative).is_file()), None)
    if place is None and relative.parts[:1] == ("configs",):
        # In a checkout, the configs that ship with RL4Sys are in configs/.
        relative = relative.relative_to("configs")
    return find_config(relative, place or beside, (shipped, shipped / "experiments"), reason)

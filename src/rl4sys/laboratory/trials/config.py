"""What the files of sweeps and of studies have in common, and how they are found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from rl4sys.config import Config, ConfigError, load, migrate, packaged_configs, parse
from rl4sys.config.files import read_file
from rl4sys.config.overrides import parse_overrides
from rl4sys.config.search import find_config
from rl4sys.experiments import ExperimentConfig
from rl4sys.experiments.config import BaseExperiment, ExperimentSection

C = TypeVar("C", bound="ManyTrials")
Seed = Annotated[int, Field(ge=0)]

_IRRELEVANT = ("config_version", "experiment", "logging")
"""Sections that do not decide what is learned, but for the seed."""


class ManyTrials(Config):
    """Trials that are variations of one experiment."""

    name: str | None = Field(None, min_length=1, max_length=60, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """A name, also of the directory; that of the file if not given."""
    base_config: str
    """The experiment that all trials start from: beside this file, here, or one that comes with RL4Sys."""
    overrides: dict[str, Any] = Field(default_factory=dict)
    """Changes to it that all trials share, by dotted keys: `training.total_timesteps: 20_000`."""
    seeds: tuple[Seed, ...] | None = Field(None, min_length=1)
    """Seeds that each configuration is tried with; that of the base if not given. A study tries one after the other,
    and judges by their mean."""
    parallel_jobs: int = Field(1, ge=1)
    """Trials at the same time, each on its share of the cores. More than there are cores gain nothing."""
    score: Literal["last", "best"] = "last"
    """By which evaluation a trial is judged: its last one, or the best it had, which flatters unsteady learning."""
    directory: str = "runs"
    """Where the directory with everything about it is made."""

    @property
    def place(self) -> Path:
        """The directory with everything about it."""
        return Path(self.directory) / (self.name or "unnamed")

    def varied(self) -> Iterator[str]:
        """What differs from trial to trial: the section and the dotted key, as `sweep.algorithm.lr`."""
        return iter(())

    @model_validator(mode="after")
    def _refuse_what_is_set_elsewhere(self) -> Self:
        """Names, places and seeds of trials follow from keys of their own; what would have no effect is refused."""
        if self.seeds is not None and len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds: {list(self.seeds)} has a seed twice, which would give the same trial twice")
        shared = [f"overrides.{'.'.join(override.path)}" for override in parse_overrides(self.overrides)]
        varied = list(self.varied())
        for given in (*shared, *varied):
            match _full_path(given.partition(".")[2]):
                case ("experiment", "name"):
                    raise ValueError(f"{given}: trials are named after the whole; use `name: …` or --name for that")
                case ("experiment", "directory"):
                    raise ValueError(f"{given}: trials are kept together; use `directory: …`, a key of its own")
                case ("experiment", "seed") if given in varied or self.seeds is not None:
                    raise ValueError(f"{given}: seeds are given as `seeds: [0, 1, 2]`, a key of its own")
        tried = {_full_path(given.partition(".")[2]): given for given in varied}
        for given in shared:
            if (found := tried.get(_full_path(given.partition(".")[2]))) is not None:
                raise ValueError(f"{given}: every trial gets its value from {found}; leave one of them out")
        return self


def load_many_trials(
    config_type: type[C],
    file: str | Path,
    folder: str,
    changes: Mapping[str, Any],
    base: str | None = None,
    name: str | None = None,
) -> C:
    """The sweep or study of a file (or of one in a folder that comes with RL4Sys).

    Its name and the path of its base are filled in; `changes` come over its overrides, and `base` and `name` replace
    those of the file.
    """
    shipped = packaged_configs()
    path = find_config(file, Path(), (shipped, shipped / folder))
    values = read_file(path)
    values |= {key: value for key, value in (("base_config", base), ("name", name)) if value is not None}
    if changes and isinstance(values.setdefault("overrides", {}), Mapping):
        values["overrides"] = {**values["overrides"], **changes}
    config = parse(config_type, values, path)
    reason = f"the base_config of {path}" if base is None else "which --base names"
    found = _find_base(config.base_config, path.parent if base is None else Path(), reason)
    made = path.stem if base is None else f"{path.stem}-{found.stem}"
    return config.model_copy(update={"name": config.name or made, "base_config": str(found)})


def vary(base: BaseExperiment, changes: Mapping[str, Any]) -> ExperimentConfig:
    """An experiment with changes by dotted keys."""
    return base.vary(_nested(changes))


def placed(config: ExperimentConfig, place: Path) -> ExperimentConfig:
    """The same experiment, with its run in a place."""
    experiment = config.experiment.model_copy(update={"directory": str(place)})
    return config.model_copy(update={"experiment": experiment})


def identity_of(base: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """What a base and overrides say about what is learned: all but name, place, seed, machine and loggers.

    As it is written, without defaults: a release with one more setting finds what an earlier one began.
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
    """`key=value` texts, as the command line has them, by their keys."""
    return {".".join(override.path): override.value for override in parse_overrides(texts)}


def _nested(changes: Mapping[str, Any]) -> dict[str, Any]:
    """All changes in one layer; one by one takes far longer."""
    layer: dict[str, Any] = {}
    for override in parse_overrides(changes):
        *above, last = _full_path(".".join(override.path))
        inner = layer
        for part in above:
            inner = inner.setdefault(part, {})
            if not isinstance(inner, dict):
                raise ConfigError(f"{'.'.join(override.path)}: '{part}' above it is set as a whole; set one of them.")
        inner[last] = override.value
    return layer


def _full_path(key: str) -> tuple[str, ...]:
    """`seed` for `experiment.seed`: the keys of that section may be given without its name."""
    return ("experiment", key) if key in ExperimentSection.model_fields else tuple(key.split("."))


def _find_base(name: str, beside: Path, reason: str) -> Path:
    """The file of a base: beside the file that names it, here, or one that comes with RL4Sys."""
    shipped, relative = packaged_configs(), Path(name)
    place = next((place for place in (beside, Path()) if (place / relative).is_file()), None)
    if place is None and relative.parts[:1] == ("configs",):
        # As a file of a checkout names what comes with RL4Sys.
        relative = relative.relative_to("configs")
    return find_config(relative, place or beside, (shipped, shipped / "experiments"), reason)

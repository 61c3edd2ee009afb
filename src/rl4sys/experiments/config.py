"""The schema of an experiment: what `rl4sys train` reads."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from rl4sys.algorithms import ALGORITHMS, AlgorithmConfig, with_default_buffer
from rl4sys.config import (
    CONFIG_VERSION,
    Config,
    ConfigError,
    Layers,
    LoadedConfig,
    Overrides,
    Registry,
    flat,
    load_plugins,
    migrate,
    origins,
    packaged_configs,
    parse,
    use_copies,
)
from rl4sys.config.component_settings import without_settings_of_other_types
from rl4sys.config.module_copies import use_module_copies
from rl4sys.config.plugin_copies import copies_in
from rl4sys.environments import ENVIRONMENTS, EnvironmentConfig
from rl4sys.experiments.callbacks import CALLBACKS, CallbackConfig
from rl4sys.experiments.loggers.registry import LOGGERS
from rl4sys.experiments.loggers.section import LoggingSection
from rl4sys.experiments.monitoring.config import AlertConfig, StabilitySection
from rl4sys.experiments.where import WhereSection
from rl4sys.networks import NETWORKS, NetworksConfig
from rl4sys.policy import RuntimeChoice
from rl4sys.replay import BUFFERS, GOAL_REWARDS, BufferConfig, TrajectoryConfig

_LATER_SETTINGS: tuple[tuple[str, Any], ...] = (
    ("imitate", None),
    ("center_rewards", False),
    ("horizon", None),
    ("schedules", {}),
    ("optimizer", None),
    ("shared_trunk", False),
)
"""Settings of algorithms that earlier versions did not have, and their defaults."""


_WARM_UP = "learning_starts"
_LATER_OF_ENVIRONMENTS = ("incumbent", "wrappers", "frame_stack", "evaluation")
"""The same for environments; unused, they are empty or 1."""


_COMPONENTS: Mapping[tuple[str, ...], Registry[Any]] = {
    ("algorithm",): ALGORITHMS,
    ("buffer",): BUFFERS,
    ("network", "actor"): NETWORKS,
    ("network", "critic"): NETWORKS,
}
"""What a config chooses by name, and may choose differently than the config that it extends."""


class ExperimentSection(Config):
    """Name, seed, device and place of a run."""

    name: str | None = Field(None, min_length=1, max_length=100)
    """A name to find the run by; made from algorithm and environment if not given."""
    seed: int = Field(0, ge=0)
    """The root of all randomness. The same seed and the same `threads` give the same run, bit for bit."""
    device: str = "auto"
    """`auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:1`."""
    threads: int | None = Field(None, ge=1)
    """Threads that torch computes with; measured at the start if not given. The number changes the bits."""
    compile: bool = False
    """Compile losses with `torch.compile` where that pays: PPO, DQN and your own algorithms without fused
    layers, about a fifth faster after some seconds of compiling. It changes the last bits, and needs a C++ compiler.
    It changes nothing for networks with memory, nor for Dreamer and PlaNet, whose recurrence is one fused step."""
    directory: str = "runs"
    """Where run directories are made."""


class TrainingSection(Config):
    """How long to train, and what to do in between."""

    total_timesteps: int = Field(100_000, ge=1)
    """Environment steps of the whole run, over all environments."""
    eval_frequency: int = Field(10_000, ge=0)
    """Steps between two evaluations; 0 evaluates at the end only."""
    num_eval_episodes: int = Field(10, ge=1)
    """Episodes per evaluation. More give a steadier estimate and take time."""
    checkpoint_frequency: int = Field(50_000, ge=1)
    """Steps between two checkpoints; what lies between is computed again after a crash."""
    keep_checkpoints: int = Field(3, ge=2)
    """Newest checkpoints to keep, besides the best one. At least two, in case one is damaged."""
    log_frequency: int = Field(2_000, ge=1)
    """Steps between two lines of metrics."""
    data: str | None = None
    """Learn from these recorded episodes instead of acting: an `.npz` file of ours, a Minari dataset (its file, its
    directory, or its id), or the directory of a server's learner. The environment only evaluates, and
    `total_timesteps` counts steps that are read."""
    video_frequency: int = Field(0, ge=0)
    """Steps between two videos in the run's `videos/`, and one at the end; 0 makes none. Needs the extra
    `rl4sys[video]`. What cannot be recorded is skipped with a warning."""
    video_length: int = Field(1_000, ge=1)
    """Steps after which the episode of a video is cut."""
    pipelined: bool = False
    """Collect in a second process while this one learns: faster, with experience one version old."""
    collectors: int = Field(1, ge=1)
    """Processes that collect if `pipelined`, each with its share of `environment.num_envs`. For slow environments."""
    collection: Literal["local", "ray"] = "local"
    """Where the collectors of a `pipelined` run are: processes on this machine, or actors on the nodes of a Ray cluster
    (`where.address`), which collect the same to the bit."""
    runtime: RuntimeChoice = RuntimeChoice.NUMPY
    """What runs the policy in collection and evaluations: `numpy`, `native` (from `rl4sys[native]`; faster for small
    networks and few lanes) or `auto`. The bits of a run depend on it, so it is resumed with what it began with."""
    ranks: int = Field(1, ge=1)
    """Processes that learn together, each with its share of `environment.num_envs` and of every batch. For networks
    that take long, such as those for images. `rl4sys train` starts them; the number changes the bits."""


class ExperimentConfig(Config):
    """An experiment, as YAML or JSON describes it."""

    config_version: int = CONFIG_VERSION
    """Version of this format; older files are migrated when they are read."""
    plugins: tuple[str, ...] = ()
    """Your own Python files (beside the config, or of an override: in the current directory) or modules, whose
    components can then be named here."""
    experiment: ExperimentSection = ExperimentSection()
    """Name, seed and device."""
    algorithm: Annotated[AlgorithmConfig, ALGORITHMS]
    """The algorithm."""
    environment: Annotated[EnvironmentConfig, ENVIRONMENTS]
    """The environment."""
    network: NetworksConfig = NetworksConfig()
    """The networks of policy and critic."""
    buffer: Annotated[BufferConfig, BUFFERS] = TrajectoryConfig()
    """The buffer for experience; the algorithm's usual one if not given."""
    training: TrainingSection = TrainingSection()
    """How long to train, and what to do in between."""
    logging: LoggingSection = LoggingSection()
    """Where metrics go."""
    alerts: tuple[AlertConfig, ...] = ()
    """Conditions to watch for during the run, and what to do when one holds."""
    callbacks: tuple[Annotated[CallbackConfig, CALLBACKS], ...] = ()
    """Your own code to call during the run, each callback by its registered name with its settings."""
    stability: StabilitySection = StabilitySection()
    """How much instability the run tolerates before it fails."""
    where: WhereSection = WhereSection()
    """On which machines runs train."""

    @model_validator(mode="before")
    @classmethod
    def _complete_buffer(cls, values: Any) -> Any:
        return with_default_buffer(_without_warm_up_on_data(values))

    def digest(self) -> str:
        """A hash of the settings that affect learning, without the seed: not name, machine, loggers and videos."""
        # Files of earlier versions do not have `ranks`.
        ranks = ["ranks"] if self.training.ranks == 1 else []
        data = ["data"] if self.training.data is None else []
        runtime = ["runtime"] if self.training.runtime is RuntimeChoice.NUMPY else []
        watching = {"training": {"video_frequency", "video_length", "collection", *ranks, *data, *runtime}}
        # Nor do they have settings that are not used here.
        unused: dict[str, Any] = {
            "algorithm": {name for name, default in _LATER_SETTINGS if getattr(self.algorithm, name, 0) == default},
            "environment": {name for name in _LATER_OF_ENVIRONMENTS if not _is_used(self.environment, name)},
        }
        lying = {"buffer": {"storage", "on_low_memory"}}
        acting = {name: True for name, acts in self._acting_sections() if not acts}
        text = self.model_dump_json(
            exclude={"experiment": True, "logging": True, "where": True, **watching, **lying, **unused, **acting}
        )
        return hashlib.sha256(text.encode()).hexdigest()

    def _acting_sections(self) -> Iterator[tuple[str, bool]]:
        """Sections that decide what is learned only if they are used, and whether they are."""
        yield "alerts", any("rollback" in alert.do for alert in self.alerts)
        yield "callbacks", bool(self.callbacks)
        yield "stability", self.stability != StabilitySection()

    @property
    def name(self) -> str:
        """The given name, or one made from algorithm and environment."""
        made = f"{ALGORITHMS.name_of(self.algorithm)}-{self.environment.name}"
        return (self.experiment.name or made).replace("/", "-").replace(":", "-")


def _without_warm_up_on_data(values: Any) -> Any:
    """The raw values of a config; one that learns from recorded data collects nothing before learning starts.

    Unless it says otherwise; malformed values are passed on unchanged, for validation to report.
    """
    algorithm, training = (values.get(key) if isinstance(values, dict) else None for key in ("algorithm", "training"))
    if not isinstance(algorithm, dict) or not isinstance(training, dict) or training.get("data") is None:
        return values
    name = algorithm.get("name")
    if not isinstance(name, str) or name not in ALGORITHMS or _WARM_UP not in ALGORITHMS.type(name).model_fields:
        return values
    return {**values, "algorithm": {_WARM_UP: 0, **algorithm}}


def _is_used(environment: EnvironmentConfig, name: str) -> bool:
    return getattr(environment, name, None) not in (None, 1, (), {})


def load_experiment(source: str | Path | Mapping[str, Any], overrides: Overrides = ()) -> ExperimentConfig:
    """The typed experiment of a file or mapping, with overrides such as `algorithm.lr=1e-3` or `seed=3`."""
    return _load(source, overrides)[0]


def load_with_origins(
    source: str | Path | Mapping[str, Any], overrides: Overrides = ()
) -> tuple[ExperimentConfig, dict[str, str]]:
    """The same, and where each of its values came from, by dotted key: a file, `override` or `default`."""
    config, loaded = _load(source, overrides)
    return config, origins(loaded, _full_names(overrides), config.model_dump(mode="json"))


class BaseExperiment:
    """An experiment to be varied: its files are read once, and each variation is checked as a whole."""

    def __init__(self, source: str | Path) -> None:
        self._source = source
        self._layers = Layers(source, _search_path(), migrate)

    def vary(self, changes: Mapping[str, Any]) -> ExperimentConfig:
        """The typed experiment with changes, nested as in a file, laid over it; errors in them name them overrides."""
        loaded = self._layers.beneath(dict(changes))
        return _typed(replace(loaded, overrides=tuple(place for place, _ in flat(changes))), self._source)


def load_entry_points() -> None:
    """Let installed packages add components: group `rl4sys.algorithms`, `rl4sys.environments`, and so on."""
    for registry in (ALGORITHMS, ENVIRONMENTS, NETWORKS, BUFFERS, GOAL_REWARDS, LOGGERS, CALLBACKS):
        registry.load_entry_points(f"rl4sys.{registry.kind}s")


def _load(source: str | Path | Mapping[str, Any], overrides: Overrides) -> tuple[ExperimentConfig, LoadedConfig]:
    loaded = Layers(source, _search_path(), migrate).resolved(_full_names(overrides))
    return _typed(loaded, source if isinstance(source, str | Path) else None), loaded


def _typed(loaded: LoadedConfig, source: str | Path | None = None) -> ExperimentConfig:
    plugins = [_found(plugin, loaded) for plugin in _texts(loaded.values.get("plugins"))]
    for path in loaded.sources:
        # The config of a run, which has copies of the plug-ins that it began with.
        use_copies(copies_in(path.parent))
        use_module_copies(path.parent)
    load_plugins(plugins, relative_to=Path.cwd())
    load_entry_points()
    values = {**without_settings_of_other_types(loaded, _COMPONENTS), "plugins": plugins}
    return parse(ExperimentConfig, values, source, loaded.overrides, lambda: _known_keys(values))


def _known_keys(values: Mapping[str, Any]) -> list[str]:
    """All keys of an experiment with the same components, for suggestions; none if these are wrong themselves."""
    chosen: dict[str, Any] = {}
    for section, key in (("algorithm", "name"), ("environment", "name"), ("buffer", "type")):
        part = values.get(section)
        if isinstance(part, Mapping) and key in part:
            chosen[section] = {key: part[key]}
    try:
        config = ExperimentConfig.model_validate(chosen)
    except ValidationError:
        return []
    return [".".join(place) for place, _ in flat(config.model_dump(mode="json"))]


def _search_path() -> tuple[Path, Path]:
    shipped = packaged_configs()
    return shipped, shipped / "experiments"


def _full_names(overrides: Overrides) -> Overrides:
    """`seed=3` for `experiment.seed=3`: the keys of that section may be given without its name."""
    short = set(ExperimentSection.model_fields)
    if isinstance(overrides, Mapping):
        return {f"experiment.{key}" if key in short else key: value for key, value in overrides.items()}
    return [f"experiment.{text}" if text.partition("=")[0].strip() in short else text for text in overrides]


def _texts(value: Any) -> Sequence[str]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ConfigError(f"plugins: got {value!r}; expected a list of file or module names")
    return value


def _found(plugin: str, loaded: LoadedConfig) -> str:
    """A plug-in file beside the config that names it, which may be one that another extends.

    One that an override names is looked for in the current directory first.
    """
    if not plugin.endswith(".py"):
        return plugin
    places = [source.parent for source in reversed(loaded.sources)]
    if ("plugins",) in loaded.overrides or not places:
        places.insert(0, Path.cwd())
    return str(next((place / plugin for place in places if (place / plugin).is_file()), places[0] / plugin).resolve())

"""A run as a trainable of Ray Tune, for its schedulers: ASHA, population-based training and others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.config import ConfigError, use_copies
from rl4sys.config.plugin_copies import plugin_texts, write_copies
from rl4sys.experiments import ExperimentConfig, Run, RunDirectory, check_combination, load_experiment
from rl4sys.experiments.config import ExperimentSection
from rl4sys.run_files import final_metrics
from rl4sys.storage import StoredRun, open_storage

try:
    from ray import tune
except ImportError as error:
    raise ImportError("rl4sys.RunTrainable needs Ray Tune. Install it with: pip install 'rl4sys[tune-ray]'") from error

BASE = "config"
"""The key of a trial's settings that names the experiment; all others are dotted keys of it, such as `algorithm.lr`."""
_VALUES, _PLUGINS = "values", "plugins_as_text"
"""The keys of an order."""


class RunTrainable(tune.Trainable):  # type: ignore[misc]  # Ray has no types
    """Trains one run. An iteration lasts until the next evaluation, after which the run is saved and closed.

    So the run directory is all there is to a trial: what Tune saves is a copy of it, and a trial that continues from
    that learns the same bits. With other settings (the exploitation of population-based training) they are applied
    from there on, and `manifest.json` records them.
    """

    @staticmethod
    def order(config: str | Path | Mapping[str, Any]) -> dict[str, Any]:
        """An experiment as a value of `param_space` that needs no files on the machines of the cluster.

        It has all settings, and the plug-ins as text.
        """
        loaded = load_experiment(config)
        return {_VALUES: loaded.model_dump(mode="json"), _PLUGINS: plugin_texts(loaded.plugins)}

    def setup(self, config: dict[str, Any]) -> None:
        """Check the settings of a trial."""
        self._experiment = _experiment(config, Path(self.logdir), self._cores())
        # A run that is the copy of another trial's continues with the settings of this one.
        self._settings = {key: value for key, value in config.items() if key != BASE and not _is_own(key)}
        self._run: RunDirectory | None = None

    def step(self) -> dict[str, Any]:
        """Train until the next evaluation; returns the newest value of every metric, by its name in a run."""
        begun = self._run
        run = Run.create(self._experiment) if begun is None else Run.resume(begun, overrides=self._settings)
        self._run = run.directory
        frequency = run.config.training.eval_frequency
        until = (run.steps // frequency + 1) * frequency
        result = run.train(stop=lambda: run.steps >= until)
        values = {"timesteps_total": result.steps, "run": str(run.directory.path), "done": result.finished}
        return {**final_metrics(run.directory.path), **values}

    def save_checkpoint(self, checkpoint_dir: str) -> None:
        """Copy the run."""
        if self._run is None:
            raise RuntimeError("The trial has not begun, so there is nothing to save.")
        stored = StoredRun(open_storage(f"file://{checkpoint_dir}"))
        stored.begin(self._run.path.name)
        stored.store(self._run.path)

    def load_checkpoint(self, checkpoint: str) -> None:
        """Continue from a copy, which may be that of another trial; the settings stay those of this one."""
        stored = StoredRun(open_storage(f"file://{checkpoint}"))
        self._run = RunDirectory(stored.fetch(Path(self._experiment.experiment.directory)))

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        """Become another trial, in the same process."""
        self.setup(new_config)
        return True

    def _cores(self) -> int:
        resources = self.trial_resources
        return 1 if resources is None else max(1, int(resources.required_resources.get("CPU", 1)))


def _experiment(settings: Mapping[str, Any], directory: Path, cores: int) -> ExperimentConfig:
    """The experiment of a trial, whose run is made in the trial's own directory."""
    if BASE not in settings:
        raise ConfigError(f"RunTrainable: param_space needs '{BASE}': a config file, or its values as a dict.")
    overrides = {key: value for key, value in settings.items() if key != BASE}
    base = settings[BASE]
    if isinstance(base, Mapping) and _VALUES in base:
        use_copies(write_copies(directory, base[_PLUGINS]))
        base = base[_VALUES]
    config = load_experiment(base, overrides)
    own = {"directory": str(directory / "runs"), "threads": config.experiment.threads or cores}
    config = config.model_copy(update={"experiment": config.experiment.model_copy(update=own)})
    if config.training.eval_frequency == 0:
        raise ConfigError("RunTrainable reports evaluations to Tune; set training.eval_frequency above 0.")
    return check_combination(config)


def _is_own(key: str) -> bool:
    """Whether a setting is that of a run itself, which a copy of it keeps: its seed, name and directory."""
    return key.startswith("experiment.") or key in ExperimentSection.model_fields

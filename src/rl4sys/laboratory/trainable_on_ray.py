"""A run as a trainable of Ray Tune, for its schedulers: ASHA, population-based training and others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from rl4sys.config import ConfigError
from rl4sys.experiments import ExperimentConfig, Result, Run, RunDirectory, check_combination, load_experiment
from rl4sys.run_files import final_metrics
from rl4sys.storage import StoredRun, open_storage

try:
    from ray import tune
except ImportError as error:
    raise ImportError("rl4sys.RunTrainable needs Ray Tune. Install it with: pip install 'rl4sys[tune-ray]'") from error

BASE = "config"
"""The key of a trial's settings that names the experiment; all others are dotted keys of it, such as `algorithm.lr`."""
_IRRELEVANT = ("logging.", "where.")
"""Settings that do not change what is learned."""


class RunTrainable(tune.Trainable):  # type: ignore[misc]  # Ray has no types
    """Trains one run. An iteration lasts until the next evaluation, after which the run is saved and closed.

    So the run directory is all there is to a trial: what Tune saves is a copy of it, and a trial that continues from
    that learns the same bits. With other settings (the exploitation of population-based training) they are applied
    from there on, and `manifest.json` records them.
    """

    def setup(self, config: dict[str, Any]) -> None:
        """Check the settings of a trial."""
        self._experiment = _experiment(config, Path(self.logdir), self._cores())
        self._run: RunDirectory | None = None

    def step(self) -> dict[str, Any]:
        """Train until the next evaluation; returns the newest value of every metric, by its name in a run."""
        run = Run.create(self._experiment) if self._run is None else Run.resume(self._run)
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
        _apply(self._experiment, self._run)

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
    config = load_experiment(settings[BASE], overrides)
    own = {"directory": str(directory / "runs"), "threads": config.experiment.threads or cores}
    config = config.model_copy(update={"experiment": config.experiment.model_copy(update=own)})
    if config.training.eval_frequency == 0:
        raise ConfigError("RunTrainable reports evaluations to Tune; set training.eval_frequency above 0.")
    return check_combination(config)


def _apply(config: ExperimentConfig, run: RunDirectory) -> None:
    """Give a copied run the settings of a trial, and record those that change what it learns."""
    before, saved = load_experiment(run.config), Result.read(run.result)
    if saved is None or (before.digest(), before.experiment.seed) == (config.digest(), config.experiment.seed):
        return
    # Its threads and device stay: others would change the bits, too.
    kept = before.experiment.model_copy(update={"seed": config.experiment.seed})
    config = config.model_copy(update={"experiment": kept})
    old, new = _flat(before.model_dump(mode="json")), _flat(config.model_dump(mode="json"))
    notes = [
        f"step {saved.steps}: {key} was {old.get(key)}, now {value}"
        for key, value in new.items()
        if old.get(key) != value and not key.startswith(_IRRELEVANT)
    ]
    manifest = run.read_manifest()
    now = {"config": config.digest(), "seed": config.experiment.seed, "inexact": [*manifest["inexact"], *notes]}
    run.config.write_text(yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True))
    run.write_manifest(manifest | now)


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by dotted keys."""
    found: dict[str, Any] = {}
    for key, value in values.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found

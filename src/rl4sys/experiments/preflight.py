"""Refuses what cannot work before anything is started, so that nothing is left half-made."""

from __future__ import annotations

import numpy as np
import torch

from rl4sys.algorithms import ALGORITHMS
from rl4sys.config import ConfigError
from rl4sys.environments import Grade
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.experiments.loggers import installed
from rl4sys.learning import choose_device
from rl4sys.replay import BUFFERS, OnceFresh, UnsuitableBuffer


def fit_to_machine(config: ExperimentConfig, *, allow_fallback: bool) -> ExperimentConfig:
    """The config with a device and loggers that are here. What is missing is refused, or replaced and told."""
    device = str(choose_device(config.experiment.device, allow_fallback=allow_fallback))
    logging = installed(config.logging, allow_fallback=allow_fallback)
    experiment = config.experiment.model_copy(update={"device": device})
    return config.model_copy(update={"experiment": experiment, "logging": logging})


def check_combination(config: ExperimentConfig) -> None:
    """Refuse parts that do not go together, and an environment that cannot be made."""
    pace = config.algorithm.pace(config.buffer.size)
    try:
        config.buffer.build(pace, np.random.default_rng(0), config.algorithm.window)
    except UnsuitableBuffer as error:
        raise ConfigError(
            f"buffer.type: {ALGORITHMS.name_of(config.algorithm)} cannot learn from a "
            f"'{BUFFERS.name_of(config.buffer)}' buffer. {error}"
        ) from None
    if config.buffer.size < config.environment.num_envs:
        raise ConfigError(
            f"buffer.size: {config.buffer.size} steps cannot be shared by {config.environment.num_envs} environments; "
            f"raise it, or lower environment.num_envs."
        )
    if config.training.pipelined and isinstance(pace, OnceFresh) and pace.max_age < 1:
        raise ConfigError(
            "algorithm.max_age: 0 refuses what training.pipelined=true collects, which is one version old; "
            "allow at least 1, or set training.pipelined=false."
        )
    Components(config, torch.device("cpu"), Grade.E3).algorithm()

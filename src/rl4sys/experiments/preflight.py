"""Checks before a run starts: device, loggers, and whether the parts fit together."""

from __future__ import annotations

import importlib.util
import logging
from pathlib import Path

import numpy as np
import torch

from rl4sys.alerts import require_notifications
from rl4sys.algorithms import ALGORITHMS, Algorithm
from rl4sys.config import ConfigError
from rl4sys.engine import build_buffer, pace_of
from rl4sys.environments import Grade
from rl4sys.environments.environment_check import is_picture
from rl4sys.environments.objects import PREFIX
from rl4sys.experience import SegmentSchema
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.experiments.ranks import RanksMisconfigured
from rl4sys.learning import choose_device
from rl4sys.policy import PolicySpec, cannot_travel
from rl4sys.replay import (
    BUFFERS,
    AvailableSpace,
    OnceFresh,
    Ratio,
    ReplayTooSmall,
    UnsuitableBuffer,
    fit_replay,
    require_space,
)

_log = logging.getLogger(__name__)

_SHORTEST_TURN = 64
"""Steps per turn of a collector on another machine: fewer take less time than asking for them."""


def fit_to_machine(config: ExperimentConfig, *, allow_fallback: bool) -> ExperimentConfig:
    """The config with an available device and installed loggers; others are refused, or replaced with a warning.

    Alerts with unusable addresses are refused.
    """
    if addresses := [address for alert in config.alerts for address in alert.notify]:
        require_notifications(addresses)
    device = str(choose_device(config.experiment.device, allow_fallback=allow_fallback))
    logging = config.logging.installed(allow_fallback=allow_fallback)
    experiment = config.experiment.model_copy(update={"device": device})
    return config.model_copy(update={"experiment": experiment, "logging": logging})


def _check_data(config: ExperimentConfig) -> None:
    """Refuse recorded data where it cannot be learned from, and offline algorithms without it."""
    name, training = ALGORITHMS.name_of(config.algorithm), config.training
    if training.data is None:
        if config.algorithm.needs_data:
            raise ConfigError(f"{name} learns from recorded data: give it with --data, or set training.data.")
        return
    if isinstance(config.algorithm.pace(config.buffer.size), OnceFresh):
        raise ConfigError(
            f"training.data: {name} learns from what its own policy has just done, and not from recorded data. Use bc, "
            f"iql, td3_bc or another algorithm with replay."
        )
    if training.pipelined or training.ranks > 1 or config.environment.incumbent is not None:
        raise ConfigError(
            "training.data: nothing is collected, so leave out training.pipelined, training.ranks and "
            "environment.incumbent."
        )


def check_combination(
    config: ExperimentConfig, algorithm: Algorithm | None = None, processes: int = 1
) -> ExperimentConfig:
    """Refuse parts that do not go together, an environment that cannot be made, and a replay that does not fit.

    Returns the config, with a smaller replay if that was necessary and allowed. A given algorithm must be that of the
    config; otherwise one is built for the check. Several processes, each with the whole replay, share the memory.
    """
    _check_data(config)
    components = Components(config, torch.device("cpu"), Grade.E3)
    explore = (algorithm or components.algorithm()).policies.explore
    schema = explore.segment_schema()
    config = _with_replay_that_fits(config, schema, processes)
    pace = pace_of(config.algorithm, config.network, config.buffer.size)
    context = components.buffer_context(schema.observation, Path(config.experiment.directory))
    try:
        build_buffer(config.algorithm, config.network, config.buffer, pace, np.random.default_rng(0), context)
    except ReplayTooSmall as error:
        raise ConfigError(f"buffer.size: {error}") from None
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
        allow = " or algorithm.max_age to at least 1" if "max_age" in type(config.algorithm).model_fields else ""
        raise ConfigError(
            f"training.pipelined: what is collected during learning is one version old, and "
            f"{ALGORITHMS.name_of(config.algorithm)} takes the newest only (max_age is 0); set "
            f"training.pipelined to false{allow}."
        )
    _check_collectors(config)
    _check_ranks(config)
    _warn_of_flattened_pictures(explore)
    _check_local_module(config, explore)
    if isinstance(pace, Ratio) and pace.warmup >= config.training.total_timesteps:
        _log.warning(
            "Learning starts after %d steps, and the run has %d: nothing will be learned. Lower "
            "algorithm.learning_starts, or raise training.total_timesteps.",
            *(pace.warmup, config.training.total_timesteps),
        )
    return config


def _warn_of_flattened_pictures(explore: PolicySpec) -> None:
    pictures = [spec for spec in explore.observation if is_picture(spec.shape, spec.dtype)]
    if pictures and not any(op.kind == "conv2d" for op in explore.program.ops):
        _log.warning(
            "Observation '%s' is a picture of shape %s, and network.actor.type=mlp flattens it into %s inputs: use "
            "network.actor.type=cnn and network.critic.type=cnn.",
            *(pictures[0].name, pictures[0].shape, f"{int(np.prod(pictures[0].shape)):,}"),
        )


def _check_local_module(config: ExperimentConfig, explore: PolicySpec) -> None:
    """Say that a policy will not travel, and why; other processes that collect do not have torch."""
    if (reason := cannot_travel(explore)) is None:
        return
    if config.training.pipelined or config.training.ranks > 1:
        raise ConfigError(
            f"training.{'pipelined' if config.training.pipelined else 'ranks'}: the policy acts in one process, "
            f"because {reason}. Leave the setting out, or use operations that travel (docs/own_algorithm.md)."
        )
    _log.warning(
        "This policy trains and acts here, but it cannot be exported or served, because %s. docs/own_algorithm.md "
        "lists the operations that travel.",
        reason,
    )


def _check_collectors(config: ExperimentConfig) -> None:
    if config.training.pipelined and config.environment.name.startswith(PREFIX):
        raise ConfigError(
            "training.pipelined: the environment is an object of this Python process, and other processes cannot make "
            "it; set training.pipelined to false, or define the environment in a module and give 'module:Name'."
        )
    lanes, processes = config.environment.num_envs // config.training.ranks, config.training.collectors
    if processes > 1 and not config.training.pipelined:
        raise ConfigError(f"training.collectors: {processes} processes collect only with training.pipelined=true.")
    if lanes % processes:
        raise ConfigError(
            f"training.collectors: {lanes} environments cannot be shared evenly by {processes} processes; choose "
            f"environment.num_envs as a multiple of it."
        )
    if config.training.collection == "ray":
        _check_remote_collection(config)


def _check_remote_collection(config: ExperimentConfig) -> None:
    training = config.training
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("training.collection: ray needs the package 'ray': pip install 'rl4sys[ray]'")
    if not training.pipelined:
        raise ConfigError("training.collection: ray collects while this process learns; set training.pipelined=true.")
    steps = config.algorithm.steps_between_updates(config.buffer.size) // training.collectors
    if steps < _SHORTEST_TURN:
        raise ConfigError(
            f"training.collection: each of {training.collectors} collectors would be asked for {steps} steps at a "
            f"time. Asking another machine does not pay for fewer than {_SHORTEST_TURN}; use collection=local, fewer "
            f"collectors, or more steps between updates."
        )


def _check_ranks(config: ExperimentConfig) -> None:
    lanes, ranks = config.environment.num_envs, config.training.ranks
    if ranks == 1:
        return
    if lanes % ranks:
        fitting = " or ".join(str(number) for number in range(1, lanes + 1) if lanes % number == 0)
        raise RanksMisconfigured(
            f"training.ranks: {lanes} environments cannot be shared evenly by {ranks} ranks; choose {fitting} ranks, "
            f"or environment.num_envs as a multiple of {ranks}."
        )
    rows = config.algorithm.model_dump().get("batch_size", config.algorithm.update_size())
    if rows < ranks:
        raise RanksMisconfigured(
            f"training.ranks: batches of {rows} rows cannot be shared by {ranks} ranks; raise algorithm.batch_size."
        )
    if config.experiment.compile:
        raise RanksMisconfigured("training.ranks: losses are compiled in single processes only; set compile=false.")
    if ":" in config.experiment.device:
        raise RanksMisconfigured(
            f"training.ranks: each rank has a GPU of its own; set device=cuda instead of {config.experiment.device}."
        )


def _with_replay_that_fits(config: ExperimentConfig, schema: SegmentSchema, processes: int) -> ExperimentConfig:
    space = AvailableSpace.at(Path(config.experiment.directory)).shared_by(processes)
    steps = config.training.total_timesteps
    frames = config.environment.frames
    buffer = fit_replay(config.buffer, schema, space, steps, frames)
    require_space(buffer.cost(schema, steps, frames), space)
    return config.model_copy(update={"buffer": buffer})

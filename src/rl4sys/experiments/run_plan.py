"""What a new run is made of, decided before its directory is made: impossible configs are refused here."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from rl4sys.algorithms import Algorithm
from rl4sys.config import ConfigError
from rl4sys.environments import Grade, GymnasiumConfig
from rl4sys.environments.environment_check import observation_outside_space
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import ExperimentConfig
from rl4sys.experiments.manifest import new_manifest
from rl4sys.experiments.preflight import check_combination, fit_to_machine
from rl4sys.experiments.threads import threads_for
from rl4sys.policy import NUMPY, NativeUnavailable, kernel_set, require_kernel_set
from rl4sys.seeding import Seeds

if TYPE_CHECKING:
    from rl4sys.experiments.ranks.rank_group import RankGroup

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The config as this machine can run it, its first weights, and its manifest."""

    config: ExperimentConfig
    components: Components
    algorithm: Algorithm
    manifest: dict[str, Any]


def _require_equal_spaces(config: ExperimentConfig) -> None:
    """Refuse an environment for evaluations with other observations or actions: the policy could not act in it."""
    evaluated = config.environment.for_evaluation()
    if evaluated is config.environment or not isinstance(evaluated, GymnasiumConfig):
        return
    specs = []
    for environment in (config.environment, evaluated):
        lanes = environment.lanes(Seeds(0), 1, Grade.E3)
        specs.append(lanes.spec)
        lanes.close()
    if specs[0] != specs[1]:
        raise ConfigError(
            f"environment.evaluation: it shows {specs[1]}, and training {specs[0]}. Use the same observations and "
            f"actions, since one policy acts in both."
        )


RUNTIME_KEY = "training.runtime"


def recorded_kernels(manifest: Mapping[str, Any]) -> str:
    """The kernel set that a run began with, and has to be resumed with; `ConfigError` if this machine lacks it."""
    # Runs of earlier versions had no other.
    kernels = str(manifest.get("kernels", NUMPY))
    try:
        require_kernel_set(kernels)
    except NativeUnavailable as error:
        raise ConfigError(
            f"The run began with the kernel set '{kernels}', and only that continues it exactly. {error} Or resume it "
            f"with {RUNTIME_KEY}=numpy; the run then notes that it is not exact."
        ) from error
    return kernels


def kernels_for(config: ExperimentConfig) -> str:
    """The kernel set of `training.runtime` on this machine."""
    try:
        return kernel_set(config.training.runtime)
    except NativeUnavailable as error:
        raise ConfigError(f"{RUNTIME_KEY}: {error}") from error


def _warn_of_observations_outside_their_space(config: ExperimentConfig) -> None:
    environment = config.environment
    if not isinstance(environment, GymnasiumConfig) or environment.backend != "lanes":
        return
    found = observation_outside_space(environment.maker(), Seeds(Seeds(config.experiment.seed).integer("check")))
    if found is not None:
        _log.warning("%s Learning continues with the values as they are; `rl4sys check-env` says more.", found)


def plan_run(config: ExperimentConfig, group: RankGroup | None, *, allow_fallback: bool) -> RunPlan:
    """Fit a config to the machine, build its algorithm, and find the exactness of its environment.

    Raises what the code of a user raises: its environment and its networks are made here for the first time.
    """
    config = fit_to_machine(config, allow_fallback=allow_fallback)
    device = torch.device(config.experiment.device)
    algorithm = Components(config, device, Grade.E3).algorithm()
    asked, config = config, check_combination(config, algorithm)
    _require_equal_spaces(config)
    # How exactly the environment resumes is found by resuming it.
    grade = config.environment.grade(Seeds(Seeds(config.experiment.seed).integer("probe")))
    _warn_of_observations_outside_their_space(config)
    components = Components(config, device, grade, group, kernels_for(config))
    manifest = new_manifest(
        config,
        threads=threads_for(config, algorithm.policies.exploit, group.place.local_ranks if group is not None else 1),
        grade=grade,
        requested_buffer_size=asked.buffer.size,
        ranks=components.describe_ranks(),
        kernels=components.kernels,
    )
    return RunPlan(config, components, algorithm, manifest)

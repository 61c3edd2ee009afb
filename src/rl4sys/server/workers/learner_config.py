"""The config of a server's learner, and the learner built from it. Only workers import this: it needs torch."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, field_validator, model_validator

from rl4sys.algorithms import ALGORITHMS, AlgorithmConfig, with_default_buffer
from rl4sys.config import Config, ConfigError, load_plugins, parse
from rl4sys.engine import FunctionScheduleConfig
from rl4sys.learning import (
    Learner,
    LearnerAssembly,
)
from rl4sys.networks import NETWORKS, NetworksConfig
from rl4sys.policy import (
    ProgramBuilder,
    layout_of,
    output_size,
)
from rl4sys.replay import (
    BUFFERS,
    GOAL_REWARDS,
    AvailableSpace,
    BufferConfig,
    BufferContext,
    ReplayConfig,
    ReplayCost,
    ReplayTooLarge,
    TrajectoryConfig,
    require_space,
)
from rl4sys.seeding import Seeds
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.reward_bounds import DEFAULT_BOUNDS
from rl4sys.wire.policy_check import MAX_REGISTER_BYTES, MAX_WEIGHTS

_log = logging.getLogger(__name__)

_CPU = torch.device("cpu")
_MAX_OPS = 1024
_NEVER = sys.maxsize
"""A learner of a server never gives up on updates that are not finite: one client may have caused them, and the next
batches may be good."""
_MAX_NUMBERS = MAX_REGISTER_BYTES // 4
"""Numbers in the registers of one decision: the limit of clients."""


class LearnerConfig(Config):
    """How a learner of the server learns. A local experiment with the same settings learns the same."""

    algorithm: Annotated[AlgorithmConfig, ALGORITHMS]
    """The algorithm and its hyperparameters."""
    network: NetworksConfig = NetworksConfig()
    """The networks of the policy and the critic."""
    buffer: Annotated[BufferConfig, BUFFERS] = TrajectoryConfig()
    """Where experience is kept; the algorithm's usual buffer if not given."""
    seed: int = Field(0, ge=0)
    """The root of all randomness of the learner."""
    normalize_obs: bool = False
    """Standardize observations with statistics that are part of the weights."""
    normalize_reward: bool = False
    """Divide rewards by the standard deviation of the discounted return."""
    reward_bounds: tuple[float, float] | None = DEFAULT_BOUNDS
    """The least and the greatest reward. Segments with others are refused and counted for their client, so that one
    client cannot spoil a shared policy; null accepts every finite reward."""
    checkpoint_frequency: int = Field(20_000, ge=1)
    """Steps between two checkpoints. A higher number writes less, and takes longer to catch up after a crash."""
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d{1,3})?)$")
    """`auto` (a GPU if the server has one), `cpu`, `cuda` or `cuda:1`. Another device changes the last bits of the
    weights. If it is not available, another one is used, and the log of the server says so."""
    threads: int = Field(1, ge=1, le=256)
    """Number of torch threads. Another number changes the last bits of the weights."""

    @field_validator("reward_bounds")
    @classmethod
    def _require_order(cls, bounds: tuple[float, float] | None) -> tuple[float, float] | None:
        if bounds is not None and not bounds[0] < bounds[1]:
            raise ValueError("the first is the least reward, and must be below the second")
        return bounds

    @field_validator("algorithm")
    @classmethod
    def _call_no_functions(cls, algorithm: AlgorithmConfig) -> AlgorithmConfig:
        # Clients may ask for any settings, and must not choose what code runs here.
        if any(isinstance(schedule, FunctionScheduleConfig) for schedule in algorithm.schedules.values()):
            raise ValueError("schedules of type function are for local runs; use linear, cosine or step")
        return algorithm

    @field_validator("network")
    @classmethod
    def _import_no_modules(cls, network: NetworksConfig) -> NetworksConfig:
        if '"type":"module"' in network.model_dump_json():
            raise ValueError("networks of type module are for local runs; choose another type")
        return network

    @model_validator(mode="before")
    @classmethod
    def _complete_buffer(cls, values: Any) -> Any:
        return with_default_buffer(values)


def resolve(algorithm: str, parameters: Mapping[str, Any]) -> LearnerConfig:
    """The typed config of an algorithm and its parameters, or `ConfigError` with suggestions."""
    chosen = parameters.get("algorithm", {})
    if not isinstance(chosen, Mapping):
        raise ConfigError(f"algorithm: got {chosen!r}; expected a mapping of hyperparameters, such as {{'lr': 0.001}}")
    named = chosen.get("name", algorithm)
    if not isinstance(named, str) or named.casefold() != algorithm.casefold():
        raise ConfigError(f"algorithm.name: got {named!r}; the request names '{algorithm}'. Name it once.")
    return parse(LearnerConfig, {**parameters, "algorithm": {**chosen, "name": algorithm}})


def load_learner_plugins(plugins: tuple[str, ...]) -> None:
    """Load the plug-ins of a server's config and of installed packages, or raise `ConfigError`."""
    load_plugins(plugins, relative_to=Path.cwd())
    for registry in (ALGORITHMS, NETWORKS, BUFFERS, GOAL_REWARDS):
        registry.load_entry_points(f"rl4sys.{registry.kind}s")


def canonical(config: LearnerConfig) -> str:
    """The config as text with all defaults: equal configs give equal text."""
    return json.dumps(config.model_dump(mode="json"), sort_keys=True)


def build_learner(
    config: LearnerConfig,
    setup: LearnerSetup,
    device: torch.device = _CPU,
    scratch: Path = Path("scratch"),
    *,
    is_new: bool = True,
) -> Learner:
    """A learner with initial weights, from the seeds that a local experiment would use.

    A replay buffer on disk is kept in `scratch`. One that does not fit is refused if the learner `is_new`.
    """
    _require_affordable(config, setup)
    assembly = learner_assembly(config, device)
    algorithm = assembly.build_algorithm(setup.observation, setup.action)
    _check_replay(config, config.buffer.cost(algorithm.policies.explore.segment_schema()), scratch, is_new=is_new)
    return assembly.build_learner(algorithm, BufferContext(setup.observation, scratch))


def learner_assembly(config: LearnerConfig, device: torch.device) -> LearnerAssembly:
    """The parts of a learner, to be put together."""
    return LearnerAssembly(
        algorithm=config.algorithm,
        network=config.network,
        buffer=config.buffer,
        seeds=Seeds(config.seed),
        device=device,
        normalize_obs=config.normalize_obs,
        normalize_reward=config.normalize_reward,
        max_skipped_in_row=_NEVER,
    )


def _check_replay(config: LearnerConfig, cost: ReplayCost | None, scratch: Path, *, is_new: bool) -> None:
    """Refuse a replay buffer that does not fit. An existing one is kept: only the free space has changed."""
    if isinstance(config.buffer, ReplayConfig) and config.buffer.on_low_memory == "shrink":
        raise ConfigError(
            "buffer.on_low_memory: got shrink; a learner of a server depends on its setup and its log only, so its "
            "replay cannot depend on the available memory. Leave it out, and choose a buffer.size that fits."
        )
    if cost is None:
        return
    _log.info("replay: %s", cost)
    try:
        require_space(cost, AvailableSpace.at(scratch))
    except ReplayTooLarge as error:
        if is_new:
            raise
        _log.warning("%s It continues all the same, since the learner exists already.", error)


def network_ops(config: LearnerConfig, setup: LearnerSetup, name: str) -> ProgramBuilder:
    """The ops of the actor or the critic with a last layer, to know their size before anything is allocated."""
    network = config.network.actor if name == "actor" else config.network.critic
    builder = ProgramBuilder(setup.observation)
    body = network.body(builder, network.features(builder, name, standardize=config.normalize_obs), name)
    if name == "actor":
        network.scores(builder, body, output_size(setup.action), f"{name}.last")
    else:
        builder.linear(network.summary(builder, body, name), output_size(setup.action), f"{name}.last")
    return builder


def _require_affordable(config: LearnerConfig, setup: LearnerSetup) -> None:
    """Refuse a network that is too large, before it is allocated: clients may ask for anything."""
    for name in ("actor", "critic"):
        builder = network_ops(config, setup, name)
        program = builder.program()
        weights = layout_of(program).size
        if weights > MAX_WEIGHTS or len(program.ops) > _MAX_OPS:
            raise ConfigError(
                f"network.{name}: got a network of {weights} weights in {len(program.ops)} ops; a server trains up to "
                f"{MAX_WEIGHTS} weights in {_MAX_OPS} ops. Choose a smaller one, or observe less."
            )
        if builder.size() > _MAX_NUMBERS:
            raise ConfigError(
                f"network.{name}: got a network that keeps {builder.size()} numbers during a decision; clients keep up "
                f"to {_MAX_NUMBERS}. Choose fewer filters or longer strides, or observe less."
            )

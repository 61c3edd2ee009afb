"""From what a client asked for to a learner. Only workers import this: it needs torch."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, model_validator

from rl4sys.algorithms import ALGORITHMS, AlgorithmConfig, Problem, with_usual_buffer
from rl4sys.config import Config, ConfigError, load_plugins, parse
from rl4sys.learning import (
    Learner,
    ObservationStatistics,
    RewardScale,
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
from rl4sys.wire.policy_check import MAX_REGISTER_BYTES, MAX_WEIGHTS

_log = logging.getLogger(__name__)

_CPU = torch.device("cpu")
_MOST_OPS = 1024
_MOST_NUMBERS = MAX_REGISTER_BYTES // 4
"""In the registers of one decision: what clients take at most."""


class LearnerConfig(Config):
    """How a learner of the server learns. A local experiment with the same settings learns the same."""

    algorithm: Annotated[AlgorithmConfig, ALGORITHMS]
    """The algorithm and its hyperparameters."""
    network: NetworksConfig = NetworksConfig()
    """What the policy and the critic are made of."""
    buffer: Annotated[BufferConfig, BUFFERS] = TrajectoryConfig()
    """Where experience waits; the algorithm's usual one if not given."""
    seed: int = Field(0, ge=0)
    """The root of all chance of the learner."""
    normalize_obs: bool = False
    """Standardize observations with statistics that travel with the weights."""
    normalize_reward: bool = False
    """Divide rewards by the deviation of the discounted return."""
    checkpoint_frequency: int = Field(20_000, ge=1)
    """Steps between two checkpoints. More write less, and take longer to catch up after a crash."""
    device: str = Field("auto", pattern=r"^(auto|cpu|cuda(:\d{1,3})?)$")
    """`auto` (a GPU if the server has one), `cpu`, `cuda` or `cuda:1`. Another one changes the last bits of the
    weights. Where it is not there, what is there is taken, and the server's log says so."""
    threads: int = Field(1, ge=1, le=256)
    """Threads that torch computes with. Another number changes the last bits of the weights."""

    @model_validator(mode="before")
    @classmethod
    def _complete_buffer(cls, values: Any) -> Any:
        return with_usual_buffer(values)


def resolve(algorithm: str, parameters: Mapping[str, Any]) -> LearnerConfig:
    """The typed config of an algorithm and its parameters, or `ConfigError` with what was meant."""
    chosen = parameters.get("algorithm", {})
    if not isinstance(chosen, Mapping):
        raise ConfigError(f"algorithm: got {chosen!r}; expected a mapping of hyperparameters, such as {{'lr': 0.001}}")
    named = chosen.get("name", algorithm)
    if not isinstance(named, str) or named.casefold() != algorithm.casefold():
        raise ConfigError(f"algorithm.name: got {named!r}; the request names '{algorithm}'. Name it once.")
    return parse(LearnerConfig, {**parameters, "algorithm": {**chosen, "name": algorithm}})


def load_learner_plugins(plugins: tuple[str, ...]) -> None:
    """Run the plug-ins of a server's config, and let installed packages add components, or raise `ConfigError`."""
    load_plugins(plugins, relative_to=Path.cwd())
    for registry in (ALGORITHMS, NETWORKS, BUFFERS, GOAL_REWARDS):
        registry.load_entry_points(f"rl4sys.{registry.kind}s")


def canonical(config: LearnerConfig) -> str:
    """A text with every default spelled out: equal configs give equal text."""
    return json.dumps(config.model_dump(mode="json"), sort_keys=True)


def build_learner(
    config: LearnerConfig,
    setup: LearnerSetup,
    device: torch.device = _CPU,
    scratch: Path = Path("scratch"),
    *,
    is_new: bool = True,
) -> Learner:
    """The learner with fresh weights, from the seeds that a local experiment would use.

    A replay that is not to lie in memory lies in `scratch`. One that does not fit is refused if the learner `is_new`.
    """
    _require_affordable(config, setup)
    seeds = Seeds(config.seed)
    problem = Problem(
        observation=setup.observation,
        action=setup.action,
        networks=config.network,
        device=device,
        seeds=Seeds(seeds.integer("algorithm")),
        standardize=config.normalize_obs,
    )
    algorithm = config.algorithm.build(problem)
    pace = config.algorithm.pace(config.buffer.size)
    explore = algorithm.policies.explore
    _check_replay(config, config.buffer.cost(explore.segment_schema()), scratch, is_new=is_new)
    context = BufferContext(setup.observation, scratch)
    return Learner(
        algorithm,
        config.buffer.build(pace, seeds.generator("replay"), config.algorithm.window, context),
        observations=ObservationStatistics(explore.observation) if config.normalize_obs else None,
        rewards=RewardScale(config.algorithm.gamma) if config.normalize_reward else None,
    )


def _check_replay(config: LearnerConfig, cost: ReplayCost | None, scratch: Path, *, is_new: bool) -> None:
    """Refuse a replay that does not fit. One that is in use already goes on, since only the room around it changed."""
    if isinstance(config.buffer, ReplayConfig) and config.buffer.on_low_memory == "shrink":
        raise ConfigError(
            "buffer.on_low_memory: got shrink; a learner of a server is made of its setup and its log alone, and so "
            "its replay cannot depend on the memory at hand. Leave it out, and choose a buffer.size that fits."
        )
    if cost is None:
        return
    _log.info("replay: %s", cost)
    try:
        require_space(cost, AvailableSpace.at(scratch))
    except ReplayTooLarge as error:
        if is_new:
            raise
        _log.warning("%s It goes on nevertheless, since the learner exists already.", error)


def _require_affordable(config: LearnerConfig, setup: LearnerSetup) -> None:
    """Clients may ask for anything: a network that would take the machine is refused before it takes any memory."""
    for name, network in (("actor", config.network.actor), ("critic", config.network.critic)):
        builder = ProgramBuilder(setup.observation)
        features = network.features(builder, name, standardize=config.normalize_obs)
        body = network.body(builder, features, name)
        builder.linear(body, output_size(setup.action), f"{name}.last")
        program = builder.program()
        weights = layout_of(program).size
        if weights > MAX_WEIGHTS or len(program.ops) > _MOST_OPS:
            raise ConfigError(
                f"network.{name}: got a network of {weights} weights in {len(program.ops)} ops; a server trains up to "
                f"{MAX_WEIGHTS} weights in {_MOST_OPS} ops. Choose a smaller one, or observe less."
            )
        if builder.size() > _MOST_NUMBERS:
            raise ConfigError(
                f"network.{name}: got a network that keeps {builder.size()} numbers during a decision; clients keep up "
                f"to {_MOST_NUMBERS}. Choose fewer filters or longer strides, or observe less."
            )

"""What the commands in a log do to a learner. Equal commands on equal learners have equal results, also refusals."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rl4sys.algorithms import ALGORITHMS, UnsuitableActions, UnsuitableNetwork
from rl4sys.checkpoints import ReplayRows, decode_state
from rl4sys.config import ConfigError, parse
from rl4sys.engine import Algorithm, drawn_rows, pace_of
from rl4sys.learning import Learner, choose_device
from rl4sys.policy import layout_of
from rl4sys.replay import OnceFresh, Ratio, UnsuitableBuffer
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.learner_config import LearnerConfig, build_learner, canonical, learner_assembly, resolve
from rl4sys.state import State, StateMismatch

_log = logging.getLogger(__name__)

_CPU = torch.device("cpu")
_FIXED = ("network", "buffer", "seed", "normalize_obs", "normalize_reward")
_CHUNK_ROWS = 4_096


class CommandRefused(ValueError):
    """A command does not fit the learner; nothing has changed."""


REFUSALS = (CommandRefused, ConfigError, StateMismatch, UnsuitableActions, UnsuitableBuffer, UnsuitableNetwork)
"""What a command may raise before it has changed anything."""


def check(directory: Path, settings: str, command: LearnerCommand) -> str:
    """The settings after a command, in canonical form, or one of `REFUSALS`: asked before the command is stored."""
    setup = LearnerSetup.read(directory)
    config = parse(LearnerConfig, json.loads(settings))
    match command.kind:
        case CommandKind.SET:
            after = changed_config(config, command.values)
            require_compatible(setup, config, after)
            return canonical(after)
        case CommandKind.INSTALL:
            _installed_weights(_algorithm(setup, config), command)
        case CommandKind.WARM_START:
            _require_fits(_algorithm(setup, config), decode_state(command.blob))
    return settings


def changed_config(config: LearnerConfig, changes: Mapping[str, Any]) -> LearnerConfig:
    """A config with other values for some dotted names."""
    values = config.model_dump(mode="json")
    for name, value in changes.items():
        *parents, last = name.split(".")
        place: Any = values
        for depth, parent in enumerate(parents):
            place = place.get(parent) if isinstance(place, dict) else None
            if not isinstance(place, dict):
                raise ConfigError(f"{name}: there is no group of settings '{'.'.join(parents[: depth + 1])}'")
        place[last] = value
    algorithm = ALGORITHMS.name_of(config.algorithm)
    if values["algorithm"] != {**values["algorithm"], "name": algorithm}:
        raise CommandRefused(
            f"algorithm.name: it cannot change during the life of a learner; it is {algorithm}. Use another "
            f"policy_id, or delete the learner."
        )
    return resolve(algorithm, values)


def require_compatible(setup: LearnerSetup, before: LearnerConfig, after: LearnerConfig) -> None:
    """Raise `CommandRefused` unless the state of a learner fits both configs."""
    for name in _FIXED:
        if getattr(before, name) != getattr(after, name):
            raise CommandRefused(
                f"{name}: it cannot change during the life of a learner, since its state would not fit. Copy the "
                f"learner with: rl4sys learners fork {setup.learner} NEW {name}.…=… --refold; or start over with reset."
            )
    old, new = _algorithm(setup, before), _algorithm(setup, after)
    for policy in ("explore", "exploit"):
        if getattr(old.policies, policy).to_json() != getattr(new.policies, policy).to_json():
            raise CommandRefused(
                "The change would give clients another policy program, and they have the present one. Copy the "
                f"learner with: rl4sys learners fork {setup.learner} NEW KEY=VALUE --refold; or start over with reset."
            )
    try:
        _require_fits(new, {"algorithm": old.train_state.state(), "observations": None, "rewards": None})
    except StateMismatch as error:
        raise CommandRefused(
            f"The change needs other networks or optimizers, and the state of the learner would not fit: {error}"
        ) from error


def rebuilt(
    learner: Learner, setup: LearnerSetup, before: LearnerConfig, after: LearnerConfig, scratch: Path
) -> Learner:
    """A learner with other settings that continues from the state of this one."""
    device = choose_device(after.device, allow_fallback=True)
    new = build_learner(after, setup, device, scratch, is_new=False)
    new.restore(learner.state())
    size = before.buffer.size
    if _draws(before, size) == _draws(after, size):
        # The same object: two large buffers at once might not fit.
        new.buffer = learner.buffer
    elif isinstance(learner.buffer, ReplayRows) and isinstance(new.buffer, ReplayRows):
        for first in range(learner.buffer.first, learner.buffer.total, _CHUNK_ROWS):
            last = min(first + _CHUNK_ROWS, learner.buffer.total)
            new.buffer.load_rows(first, learner.buffer.rows(first, last))
    torch.set_num_threads(after.threads)
    return new


def install(learner: Learner, command: LearnerCommand) -> None:
    """Let the learner act with given weights: its next version."""
    learner.install(_installed_weights(learner.algorithm, command), int(command.values["steps"]))


def warm_start(learner: Learner, setup: LearnerSetup, config: LearnerConfig, command: LearnerCommand) -> None:
    """Let the learner continue from the state of another one: its next version."""
    state = decode_state(command.blob)
    # On a copy first: a state that does not fit must not leave the learner half changed.
    _require_fits(_algorithm(setup, config), state)
    learner.warm_start(state)


def _algorithm(setup: LearnerSetup, config: LearnerConfig) -> Algorithm:
    return learner_assembly(config, _CPU).build_algorithm(setup.observation, setup.action)


def _installed_weights(algorithm: Algorithm, command: LearnerCommand) -> np.ndarray[Any, np.dtype[np.float32]]:
    weights = np.frombuffer(command.blob, "<f4")
    expected = layout_of(algorithm.policies.explore.program).size
    if weights.size != expected:
        raise CommandRefused(f"The policy has {weights.size:,} weights, and the learner's has {expected:,}.")
    if not np.isfinite(weights).all():
        raise CommandRefused("The policy has weights that are not finite.")
    return weights


def _require_fits(algorithm: Algorithm, state: State) -> None:
    """Raise `StateMismatch` unless an algorithm can restore a state."""
    try:
        algorithm.train_state.restore(state["algorithm"])
    except StateMismatch:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        raise StateMismatch(f"The state does not fit: {type(error).__name__}: {error}") from error
    if not np.isfinite(algorithm.train_state.policy_weights()).all():
        raise StateMismatch("The state has weights that are not finite.")


def _draws(config: LearnerConfig, size: int) -> tuple[OnceFresh | Ratio, int]:
    """When and how much a learner draws from its buffer."""
    return pace_of(config.algorithm, config.network, size), drawn_rows(config.algorithm, config.network)

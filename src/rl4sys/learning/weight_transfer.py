"""Copies weights from one learner or policy into another by the names of their tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch

from rl4sys.engine import TrainState
from rl4sys.experience import Array
from rl4sys.networks import Parameters

_SHOWN = 4
"""Tensors that an error message names."""


class TransferMismatch(ValueError):
    """Weights or statistics of another run do not fit."""


@dataclass(frozen=True, slots=True)
class KnownWeights:
    """The tensors of a trained learner or policy, with the statistics of its normalisers."""

    tensors: Mapping[str, Array]
    targets: Mapping[tuple[str, str], Array] = field(default_factory=dict)
    """Those of target networks, by network and tensor; where they are missing, targets begin equal to their network."""
    observations: Any = None
    """State of the statistics of observations; None if only mean and scale are known, as in a policy."""
    rewards: Any = None
    steps: int = 0
    """Steps that they were trained for."""


class Transfer(NamedTuple):
    """Which tensors were copied, and which stayed as they were."""

    copied: tuple[str, ...]
    left: tuple[str, ...]


def weights_of(state: TrainState) -> tuple[dict[str, Array], dict[tuple[str, str], Array]]:
    """The tensors of all networks, and those of target networks."""
    tensors: dict[str, Array] = {}
    targets: dict[tuple[str, str], Array] = {}
    for owner, parameters in state.parameters():
        for name, view in parameters.views.items():
            values = view.detach().cpu().numpy().copy()
            if owner.endswith(".target"):
                targets[owner, name] = values
            else:
                tensors.setdefault(name, values)
    return tensors, targets


def transfer(state: TrainState, known: KnownWeights, parts: Sequence[str] = ()) -> Transfer:
    """Copy the trained tensors that have these names, or begin with them; without names, all that are known.

    Frozen tensors such as ε belong to schedules and stay. A tensor of another shape is refused, and so is a part that
    either side lacks.
    """
    trained = {
        name: parameters
        for owner, parameters in state.parameters()
        if not owner.endswith(".target")
        for name, view in parameters.views.items()
        if view.requires_grad
    }
    wanted = [name for name in trained if not parts or any(_belongs(name, part) for part in parts)]
    _require_parts(parts, trained, known.tensors)
    copied = [name for name in wanted if name in known.tensors]
    if unfit := [name for name in copied if known.tensors[name].shape != tuple(trained[name].views[name].shape)]:
        shapes = ", ".join(
            f"{name} {known.tensors[name].shape} there, {tuple(trained[name].views[name].shape)} here"
            for name in unfit[:_SHOWN]
        )
        fitting = sorted({_layer(name) for name in copied} - {_layer(name) for name in unfit})
        advice = f"name the parts that fit, such as {', '.join(fitting[:_SHOWN])}" if fitting else "nothing else fits"
        raise TransferMismatch(f"The shapes of {len(unfit)} tensors differ: {shapes}; {advice}.")
    if not copied:
        raise TransferMismatch(
            f"None of the weights are known there: this run has {_listed(wanted)}; there is {_listed(known.tensors)}."
        )
    for name in copied:
        trained[name].set(name, torch.from_numpy(np.array(known.tensors[name])))
    _copy_targets(state, known, trained, copied)
    return Transfer(tuple(copied), tuple(name for name in trained if name not in copied))


def _copy_targets(
    state: TrainState, known: KnownWeights, trained: Mapping[str, Parameters], copied: Sequence[str]
) -> None:
    for owner, parameters in state.parameters():
        for name in parameters.views if owner.endswith(".target") else ():
            if name in copied:
                value = known.targets.get((owner, name))
                here = trained[name].views[name].detach()
                parameters.set(name, here if value is None else torch.from_numpy(np.array(value)))


def _require_parts(parts: Sequence[str], here: Mapping[str, object], there: Mapping[str, object]) -> None:
    for part in parts:
        for names, place in ((here, "this run"), (there, "the source")):
            if not any(_belongs(name, part) for name in names):
                known = ", ".join(sorted({name.partition(".")[0] for name in names}))
                raise TransferMismatch(f"'{part}' is no part of the weights of {place}; there are {known}.")
        if missing := [name for name in here if _belongs(name, part) and name not in there]:
            raise TransferMismatch(f"The source has no {_listed(missing)}, which belong to '{part}'.")


def _layer(name: str) -> str:
    return name.rpartition(".")[0] or name


def _belongs(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    shown = list(names)[:_SHOWN]
    return ", ".join(shown) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")

"""Compares an exported policy with the training network on many observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np
import torch

from rl4sys.experience import Array, Arrays, ArraySpec
from rl4sys.experiments.policies.greedy import greedy, is_supported, parameters
from rl4sys.networks import from_spec
from rl4sys.policy import (
    BoxAction,
    DiscreteAction,
    Head,
    MixedAction,
    MultiDiscreteAction,
    NumpyPolicy,
    PolicySpec,
    action_encoder,
    layout_of,
    output_size,
)

BOUND = 1e-4
"""The largest difference that rounding explains, as a share of 1 + |value|."""
_ROWS = 256
_STEPS = 4
"""Decisions one after the other, for policies with memory."""
_FEW = 8

Outputs: TypeAlias = Callable[[Arrays, Arrays], Mapping[str, Array]]
"""Observations and memory in; `action`, the parameters of the head and `next.NAME` out."""


class ParityBroken(ArithmeticError):
    """An exported policy does not compute what was trained."""


class Parity(NamedTuple):
    """The largest difference between an exported policy and the training network."""

    largest: float
    """The largest difference, as a share of 1 + |value|; of a choice, how much worse its score is."""
    where: str
    """The output that it was found in."""
    decisions: int

    def require(self, bound: float) -> None:
        """Raise `ParityBroken` above a bound; a NaN is above every bound."""
        if not self.largest <= bound:
            raise ParityBroken(
                f"The exported policy differs from the training network by {self.largest:.3g} in '{self.where}', over "
                f"{self.decisions:,} decisions; at most {bound:.3g} is explained by rounding. Nothing was written. "
                f"Look for weights that are huge or not finite (rl4sys policy inspect), and report it otherwise."
            )


def parity(spec: PolicySpec, trained: Array, exported: Outputs, seed: int = 0) -> Parity:
    """Compare an exported policy with the torch network that holds the trained weights."""
    rng, network = np.random.default_rng(seed), TorchOutputs(spec, trained)
    carry: Arrays = {m.name: np.zeros((_ROWS, *m.shape), np.float32) for m in greedy(spec).program.carry}
    worst, where = 0.0, "action"
    for _ in range(_STEPS if carry else 1):
        observation = some_observations(spec, trained, _ROWS, rng)
        expected, got = network(observation, carry), exported(observation, carry)
        for name, values in expected.items():
            difference = network.regret(got[name]) if name == "action" else largest_difference(values, got[name])
            if not difference <= worst:
                worst, where = difference, name
        carry = {name: expected[f"next.{name}"] for name in carry}
    return Parity(worst, where, _ROWS * (_STEPS if carry else 1))


class TorchOutputs:
    """The training network, asked for all that an export is compared by."""

    def __init__(self, spec: PolicySpec, weights: Array) -> None:
        self._spec, self._best = spec, greedy(spec)
        self._program, numbers = from_spec(self._best)
        with torch.no_grad():
            numbers.flat.copy_(torch.from_numpy(np.array(weights, np.float32)))
        self._scores: Array = np.zeros(0, np.float32)
        self._numbers = self._scores
        """The real numbers of a mixed action."""
        self._action: Array = self._scores

    def __call__(self, observation: Arrays, carry: Arrays) -> dict[str, Array]:
        """What the network makes of these rows."""
        with torch.no_grad():
            registers = self._program(_tensors(observation), _tensors(carry))
        arrays = {name: value.numpy() for name, value in registers.items()}
        self._scores = arrays[self._best.head.inputs[0]]
        if isinstance(self._spec.action, MixedAction):
            self._scores, self._numbers = np.split(self._scores, [self._spec.action.choices], axis=1)
        if self._best.head.count is not None:
            existing = np.arange(self._scores.shape[1]) < observation[self._best.head.count]
            self._scores = np.where(existing, self._scores, -np.inf)
        if self._best.head.mask is not None:
            self._scores = np.where(observation[self._best.head.mask], self._scores, -np.inf)
        self._action = self._decide()
        if self._best.head.action_register is not None:
            arrays[self._best.head.action_register] = self._encoded_action()
        outputs = {"action": self._action} | {name: arrays[r] for name, r in parameters(self._spec).items()}
        return outputs | {f"next.{m.name}": arrays[m.next] for m in self._best.program.carry}

    def regret(self, action: Array) -> float:
        """How far an action is from the network's own: for choices, by how much their scores are worse."""
        if isinstance(self._spec.action, BoxAction):
            return largest_difference(self._action, action)
        if action.shape != self._action.shape:
            return float("inf")
        own, other = self._action.reshape(len(action), -1), action.reshape(len(action), -1)
        difference = 0.0
        if isinstance(self._spec.action, MixedAction):
            parts = len(self._spec.action.sizes)
            difference = largest_difference(own[:, parts:], other[:, parts:])
            own, other = own[:, :parts].astype(np.int64), other[:, :parts].astype(np.int64)
        losses = [
            largest_difference(np.take_along_axis(part, own[:, [i]], 1), np.take_along_axis(part, other[:, [i]], 1))
            for i, part in enumerate(self._parts())
        ]
        return max(difference, *losses)

    def _parts(self) -> list[Array]:
        if isinstance(self._spec.action, MultiDiscreteAction | MixedAction):
            return np.split(self._scores, np.cumsum(self._spec.action.sizes)[:-1], axis=1)
        return [self._scores]

    def _encoded_action(self) -> Array:
        encoded = np.zeros((len(self._action), output_size(self._spec.action)), np.float32)
        action_encoder(self._spec.action)(self._action, encoded)
        return encoded

    def _decide(self) -> Array:
        match self._best.action:
            case DiscreteAction():
                return np.asarray(self._scores.argmax(1))
            case MultiDiscreteAction():
                return np.stack([part.argmax(1) for part in self._parts()], axis=1)
            case MixedAction():
                chosen = np.stack([part.argmax(1) for part in self._parts()], axis=1)
                return np.concatenate([chosen.astype(np.float32), self._numbers], axis=1)
            case BoxAction(low=low, high=high):
                squash = {"tanh": torch.tanh, "clip": lambda x: x.clamp(-1.0, 1.0)}.get(
                    str(self._best.head.settings.get("squash"))
                )
                if squash is None:
                    return self._scores
                bottom, top = np.array(low, np.float32), np.array(high, np.float32)
                squashed = squash(torch.from_numpy(self._scores)).numpy()
                return np.asarray(squashed * (top - bottom) / 2 + (top + bottom) / 2, np.float32)


class NumpyOutputs:
    """The numpy runtime, asked for the same: each register is the action of a policy that does nothing with it."""

    def __init__(self, spec: PolicySpec, weights: Array) -> None:
        best = greedy(spec)
        self._best = NumpyPolicy(best, weights)
        self._each = {name: _revealing(best, register, weights) for name, register in parameters(spec).items()}

    def __call__(self, observation: Arrays, carry: Arrays) -> dict[str, Array]:
        """What the runtime makes of these rows."""
        noise = np.zeros((len(next(iter(observation.values()))), 0), np.float32)
        decision = self._best.act(observation, noise, carry)
        outputs = {"action": decision.action.copy()}
        outputs |= {f"next.{name}": memory.copy() for name, memory in decision.carry.items()}
        return outputs | {name: each.act(observation, noise, carry).action for name, each in self._each.items()}


def some_observations(spec: PolicySpec, weights: Array, rows: int, rng: np.random.Generator) -> dict[str, Array]:
    """Observations as a policy may meet them: around the mean that it standardises by, within what it indexes."""
    tensors = layout_of(spec.program).views(np.asarray(weights, np.float32))
    seen = greedy(spec).observation if is_supported(spec) else spec.observation
    return {array.name: _observed(spec, array, tensors, rows, rng) for array in seen}


def _observed(spec: PolicySpec, array: ArraySpec, tensors: Arrays, rows: int, rng: np.random.Generator) -> Array:
    shape = (rows, *array.shape)
    if array.name == spec.head.count:
        return rng.integers(1, output_size(spec.action) + 1, shape).astype(array.dtype)
    if array.dtype == "bool":
        allowed = rng.random(shape) < 0.5
        # One choice of each group must be allowed; allowing the first of each is enough.
        action = spec.action
        sizes = action.sizes if isinstance(action, MultiDiscreteAction | MixedAction) else (array.shape[-1],)
        allowed[..., [int(start) for start in np.cumsum((0, *sizes))[:-1]]] = True
        return allowed
    if array.dtype != "float32":
        tables = [tensors[op.tensors[0]] for op in spec.program.ops if op.kind == "embed" and array.name in op.inputs]
        most = min((len(table) for table in tables), default=256 if array.dtype == "uint8" else _FEW)
        return rng.integers(most, size=shape).astype(array.dtype)
    values = rng.standard_normal(shape, np.float32)
    mean, scale = tensors.get(f"{array.name}.mean"), tensors.get(f"{array.name}.scale")
    if mean is None or scale is None or mean.shape != array.shape:
        return values
    return np.asarray(mean + values / np.where(scale > 0, scale, 1), np.float32)


def _revealing(spec: PolicySpec, register: str, weights: Array) -> NumpyPolicy:
    """A policy whose action is the value of a register."""
    unbounded = BoxAction((-np.inf,), (np.inf,))
    # A memory of the action would be of another one, so it stays as it was.
    carry = (replace(m, next=m.name) if m.next in spec.head.outputs else m for m in spec.program.carry)
    program = replace(spec.program, carry=tuple(carry))
    # The mask is about choices, and there are none.
    head = Head("deterministic", (register,))
    return NumpyPolicy(replace(spec, action=unbounded, program=program, head=head), weights)


def _tensors(arrays: Arrays) -> dict[str, torch.Tensor]:
    return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}


def largest_difference(expected: Array, got: Array) -> float:
    """The largest difference as a share of 1 + |expected|; infinite where the shapes differ, NaN where a number is."""
    if expected.shape != got.shape:
        return float("inf")
    if expected.size == 0:
        return 0.0
    wide = expected.astype(np.float64)
    with np.errstate(invalid="ignore"):
        share = np.abs(wide - got) / (1.0 + np.abs(wide))
    return float(np.max(np.where(expected == got, 0.0, share)))

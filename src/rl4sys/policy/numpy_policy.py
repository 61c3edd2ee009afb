"""Runs a policy program with numpy: the same decisions as torch, without torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from rl4sys.experience import Array, Arrays, ArraySpec
from rl4sys.policy.action_encoding import remember_action
from rl4sys.policy.action_spec import BoxAction
from rl4sys.policy.chance import after_chance, chance_registers, compile_chance
from rl4sys.policy.compiled_op import Thunk, buffer
from rl4sys.policy.heads import categorical_by_row, compile_head, head_outputs, noise_size
from rl4sys.policy.local_ops import cannot_travel, compiler_of, unknown_ops
from rl4sys.policy.policy_spec import PolicySpec, Program
from rl4sys.policy.row_ops import compile_for_rows
from rl4sys.policy.vector_heads import Decide
from rl4sys.weights import Layout

_INFINITY = float("inf")
_PLANS = 16
"""How many batch sizes stay compiled, so that varying batch sizes do not fill the memory."""


class UnknownOp(ValueError):
    """A policy uses an op or a head that this runtime does not have."""


class Decision(NamedTuple):
    """The actions of a policy for each row, what it recorded about them, and its carry afterwards.

    The arrays belong to the runtime and are valid until its next decision.
    """

    action: Array
    extras: Arrays
    carry: Arrays


def layout_of(program: Program) -> Layout:
    """The layout of a program's tensors in its flat weights."""
    return Layout((tensor.name, tensor.shape) for tensor in program.tensors)


class NumpyPolicy:
    """A policy that acts for a batch of rows. It is not thread-safe: give each thread its own.

    The weights are a private copy, so `load` changes the version between two decisions and never within one.
    """

    def __init__(self, spec: PolicySpec, weights: Array | None = None) -> None:
        programs = (spec.program,) if spec.model is None else (spec.program, spec.model)
        unknown = unknown_ops(programs)
        if unknown:
            if (reason := cannot_travel(spec)) is not None:
                raise UnknownOp(f"This policy acts only in processes that train: {reason}")
            kinds = [op.kind for op in unknown]
            raise UnknownOp(f"This runtime lacks the ops {kinds}; upgrade rl4sys, or decide on the server.")
        self.spec = spec
        self.noise_size = noise_size(spec)
        layout = layout_of(spec.program)
        self._weights = np.zeros(layout.size, np.float32)
        self._tensors = layout.views(self._weights)
        self._plans: dict[tuple[int, ...], _Plan] = {}
        self._row_plans: dict[int, _Plan] = {}
        self._single: _Plan | None = None
        self.is_finite = _finite_check(self)
        """Whether a decision for one row is free of NaN and infinity; valid until the next decision."""
        if weights is not None:
            self.load(weights)

    def load(self, weights: Array) -> None:
        """Use these flat weights from the next decision on."""
        if weights.shape != self._weights.shape:
            raise ValueError(
                f"The policy has {self._weights.size} weights; got an array of shape {weights.shape}. "
                f"The weights belong to another architecture."
            )
        np.copyto(self._weights, weights)

    def initial_carry(self, rows: int) -> dict[str, Array]:
        """The carry at the start of an episode: zeros."""
        carry = self.spec.program.carry
        return {memory.name: np.zeros((rows, *memory.shape), np.float32) for memory in carry}

    def act(self, observation: Arrays, noise: Array, carry: Arrays | None = None) -> Decision:
        """Choose an action for every row of the observation arrays [N, …], with uniform noise [N, noise_size]."""
        plan = self._plans.get(noise.shape)
        if plan is None:
            plan = self._compile(noise.shape)
        return plan.run(observation, noise, carry)

    def act_on_row(self, columns: Arrays, row: int, noise: Array, carry: Arrays | None = None) -> Decision:
        """Choose an action for one row of columns [N, …] of the program's dtypes, with noise [1, noise_size]."""
        plan = self._single
        if plan is None:
            plan = self._single = self._compile((1, self.noise_size))
        return plan.run_row(columns, row, noise, carry)

    def act_on_rows(self, observation: Arrays, noise: Array, carry: Arrays | None = None) -> tuple[Decision, Array]:
        """Choose an action for every row of [N, …], with the same bits as `act_on_row` for each of them.

        The decision has N rows or more, of which the first N count. Also returns which of these are finite.
        """
        count = len(noise)
        rows = 1 << (count - 1).bit_length()
        plan = self._row_plans.get(rows)
        if plan is None:
            if self._single is None:
                self._single = self._compile((1, self.noise_size))
            plan = self._row_plans[rows] = _Plan(self.spec, self._tensors, rows, self._single.registers)
        if rows > count:
            # Few sizes are compiled: the last row fills the others.
            observation, noise = {n: _filled(array, rows) for n, array in observation.items()}, _filled(noise, rows)
            carry = None if carry is None else {name: _filled(array, rows) for name, array in carry.items()}
        decision = plan.run(observation, noise, carry)
        return decision, _finite_rows(self.spec, decision, plan.scores)[:count]

    def scores(self, rows: int) -> list[Array]:
        """The registers that the head read for the last decision of so many rows."""
        plan = self._single if rows == 1 else self._plans.get((rows, self.noise_size))
        return [] if plan is None else plan.scores

    def _compile(self, shape: tuple[int, ...]) -> _Plan:
        if len(shape) != 2 or shape[1] != self.noise_size:
            raise ValueError(
                f"Got noise of shape {shape}; this policy takes (rows, {self.noise_size}). "
                f"Draw it with KeyedNoise(seed, streams, policy.noise_size)."
            )
        plan = _Plan(self.spec, self._tensors, rows=shape[0])
        if len(self._plans) == _PLANS:
            del self._plans[next(iter(self._plans))]
        self._plans[shape] = plan
        return plan


class _Plan:
    """The program compiled for one number of rows: buffers allocated once, calls in order."""

    def __init__(
        self, spec: PolicySpec, tensors: Mapping[str, Array], rows: int, single: Mapping[str, Array] | None = None
    ) -> None:
        """`single`: the registers of the program for one row, if every row is to have the same bits as there."""
        program = spec.program
        inputs = {array.name: _input(array, rows) for array in program.inputs}
        memory = {m.name: np.zeros((rows, *m.shape), np.float32) for m in program.carry}
        registers: dict[str, Array] = inputs | memory | chance_registers(spec, rows)
        self._calls: list[Thunk] = []
        for op in program.ops:
            arrays = [registers[name] for name in op.inputs]
            weights = [tensors[name] for name in op.tensors]
            if single is None:
                compiled = compiler_of(op.kind)(op, arrays, weights)
            else:
                compiled = compile_for_rows(op, arrays, weights, [single[name] for name in op.inputs])
            registers |= zip(op.outputs, compiled.outputs, strict=True)
            self._calls += compiled.calls
        registers |= head_outputs(spec, rows)
        self.registers = registers
        self.scores = [registers[name] for name in spec.head.inputs]
        self._next = {memory.name: registers[memory.next] for memory in program.carry}
        self._fill_noise = compile_chance(spec, registers)
        decide = compile_head(spec, registers, tensors, None if single is None else categorical_by_row)
        self._decide: Decide = remember_action(after_chance(decide, spec), spec, registers)
        # Reading the shape of an array in every decision would be slow.
        self._inputs = [(name, buffer, buffer.shape) for name, buffer in inputs.items()]
        self._memory = [(name, buffer, buffer.shape) for name, buffer in memory.items()]
        self._first_rows = [(name, buffer[0, ...]) for name, buffer in inputs.items()] if rows else []
        self._decision = Decision(np.zeros(0), {}, self._next)

    def run(self, observation: Arrays, noise: Array, carry: Arrays | None) -> Decision:
        _fill(self._inputs, observation, "observation")
        return self._decided(noise, carry)

    def run_row(self, columns: Arrays, row: int, noise: Array, carry: Arrays | None) -> Decision:
        for name, first in self._first_rows:
            first[...] = columns[name][row]
        return self._decided(noise, carry)

    def _decided(self, noise: Array, carry: Arrays | None) -> Decision:
        if self._memory:
            if carry is None:
                for _, buffer, _ in self._memory:
                    buffer.fill(0.0)
            else:
                _fill(self._memory, carry, "carry")
        if self._fill_noise is not None:
            self._fill_noise(noise)
        for call in self._calls:
            call()
        action, extras = self._decide(noise)
        decision = self._decision
        if action is not decision.action or extras is not decision.extras:
            # Heads for one row reuse their arrays, so that the same decision object can be returned again.
            decision = self._decision = Decision(action, extras, self._next)
        return decision


def _finite_check(policy: NumpyPolicy) -> Callable[[Decision], bool]:
    """The cheapest check that finds NaN and infinity in a decision for one row."""
    spec = policy.spec
    if isinstance(spec.action, BoxAction):
        return lambda decision: _all_finite(decision.action[0])
    if spec.head.kind == "categorical":
        # The log-probability is NaN if any logit is NaN or infinite.
        return lambda decision: (value := decision.extras["log_prob"].item()) - value == 0.0
    return lambda decision: all(_all_finite(scores) for scores in policy.scores(1))


def _finite_rows(spec: PolicySpec, decision: Decision, scores: list[Array]) -> Array:
    """Which rows of a decision are free of NaN and infinity."""
    if isinstance(spec.action, BoxAction):
        scores = [decision.action]
    elif spec.head.kind == "categorical":
        scores = [decision.extras["log_prob"][:, None]]
    finite = np.ones(len(decision.action), np.bool_)
    for score in scores:
        finite &= np.isfinite(score).all(axis=1)
    return finite


def _filled(array: Array, rows: int) -> Array:
    """So many rows, of which the last ones repeat the last row."""
    filled = np.empty((rows, *array.shape[1:]), array.dtype)
    filled[: len(array)], filled[len(array) :] = array, array[-1]
    return filled


def _all_finite(array: Array) -> bool:
    flat = array if array.ndim == 1 else array.ravel()
    # A sum of squares is finite unless a value is not, or all are huge: one cheap call for the common case.
    return bool(flat.dot(flat) < _INFINITY) or bool(np.isfinite(flat).all())


def _input(array: ArraySpec, rows: int) -> Array:
    shape = (rows, *array.shape)
    return buffer(shape) if array.dtype == "float32" else np.zeros(shape, array.dtype)


def _fill(buffers: list[tuple[str, Array, tuple[int, ...]]], arrays: Arrays, what: str) -> None:
    """Copy named arrays into their buffers. Shapes must be equal: broadcasting would hide a mistake."""
    try:
        for name, buffer, shape in buffers:
            array = arrays[name]
            if array.shape != shape:
                raise ValueError(f"'{name}' has shape {array.shape}, not {shape}")
            np.copyto(buffer, array)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        got = ", ".join(_described(name, np.asarray(array)) for name, array in arrays.items())
        expected = ", ".join(_described(name, buffer) for name, buffer, _ in buffers)
        raise ValueError(f"The policy cannot read this {what}: got {got}; expected {expected}.") from error


def _described(name: str, array: Array) -> str:
    return str(ArraySpec(name, str(array.dtype), array.shape))

"""Runs a policy program with the native extension: the decisions of `NumpyPolicy`, several times faster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy.action_spec import action_array
from rl4sys.policy.native_extension import native_extension
from rl4sys.policy.numpy_policy import Decision, NumpyPolicy
from rl4sys.policy.policy_spec import CLIENT_HEADS, PolicySpec

_NOT_FINITE = 2
"""The number of the outcome for scores or actions that are NaN or infinite."""


def row_policy(spec: PolicySpec, kernels: str = "") -> Any:
    """The policy of the extension, without weights. `kernels`: as for `NativePolicy`."""
    extension = native_extension()
    return extension.RowPolicy(json.loads(spec.to_json()), kernels or extension.kernel_sets()[0])


class NativePolicy:
    """A policy that acts for rows. It is not thread-safe: give each thread its own.

    numpy is the reference: it decides, or raises, wherever the extension does not decide.
    """

    @staticmethod
    def can_run(spec: PolicySpec) -> bool:
        """Whether the extension has the head and all ops of the policy: planning is numpy's, for example."""
        known = frozenset(native_extension().known_ops())
        is_known = all(op.kind in known for op in spec.program.ops)
        return is_known and spec.head.kind in CLIENT_HEADS and spec.model is None

    def __init__(self, spec: PolicySpec, weights: Array | None = None, kernels: str = "") -> None:
        """`kernels`: the set of kernels, such as `avx2`; absent for the fastest one here."""
        self.rows = row_policy(spec, kernels)
        """The policy of the extension."""
        self._reference = NumpyPolicy(spec)
        self.spec, self.noise_size = spec, self._reference.noise_size
        self._inputs = [(array.name, np.dtype(array.dtype), array.shape) for array in spec.observation]
        self._memories = [(memory.name, memory.shape) for memory in spec.program.carry]
        self._answers: dict[int, _Answer] = {}
        self._is_decided = True
        if weights is not None:
            self.load(weights)

    def load(self, weights: Array) -> None:
        """Use these flat weights from the next decision on."""
        self._reference.load(weights)
        self.rows.load(np.ascontiguousarray(weights, np.float32))

    def initial_carry(self, rows: int) -> dict[str, Array]:
        """The carry at the start of an episode: zeros."""
        return self._reference.initial_carry(rows)

    def is_finite(self, decision: Decision) -> bool:
        """Whether the last decision for one row is free of NaN and infinity."""
        return self._is_decided or self._reference.is_finite(decision)

    def act(self, observation: Arrays, noise: Array, carry: Arrays | None = None) -> Decision:
        """Choose an action for every row of the observation arrays [N, …], with uniform noise [N, noise_size]."""
        rows = len(noise)
        arrays = self._readable(observation, rows)
        if arrays is None or noise.shape != (rows, self.noise_size) or not rows:
            # numpy explains what is wrong.
            return self._reference.act(observation, noise, carry)
        answer = self._answer(rows)
        if not self._decide(arrays, 0, noise, carry, answer):
            return self._reference.act(observation, noise, carry)
        return answer.decision

    def act_on_row(self, columns: Arrays, row: int, noise: Array, carry: Arrays | None = None) -> Decision:
        """Choose an action for one row of columns [N, …] of the program's dtypes, with noise [1, noise_size]."""
        answer = self._answer(1)
        arrays = tuple([columns[name] for name, _, _ in self._inputs])
        self._is_decided = self._decide(arrays, row, noise, carry, answer)
        return answer.decision if self._is_decided else self._reference.act_on_row(columns, row, noise, carry)

    def act_on_rows(self, observation: Arrays, noise: Array, carry: Arrays | None = None) -> tuple[Decision, Array]:
        """Choose an action for every row of [N, …], with the same bits as `act_on_row` for each of them.

        Also returns which rows are finite.
        """
        rows = len(noise)
        answer = self._answer(rows)
        arrays = tuple([np.ascontiguousarray(observation[name], dtype) for name, dtype, _ in self._inputs])
        if self._decide(arrays, 0, noise, carry, answer):
            return answer.decision, np.ones(rows, np.bool_)
        if (answer.outcomes[answer.outcomes > 0] == _NOT_FINITE).all():
            return answer.decision, answer.outcomes == 0
        return self._reference.act_on_rows(observation, noise, carry)

    def _decide(self, arrays: tuple[Array, ...], first: int, noise: Array, carry: Arrays | None, to: _Answer) -> bool:
        """Write decisions to an answer; false if there is a row without one."""
        held = None if carry is None else tuple([_plain(carry[name]) for name, _ in self._memories])
        return bool(
            self.rows.decide_rows(
                arrays, first, to.rows, _plain(noise), held, to.action, to.log_prob, to.carry, to.outcomes
            )
        )

    def _readable(self, observation: Arrays, rows: int) -> tuple[Array, ...] | None:
        """The arrays as the program declares them; None if one is missing, or has another shape."""
        arrays = []
        for name, dtype, shape in self._inputs:
            array = observation.get(name)
            if array is None or array.shape != (rows, *shape) or not np.can_cast(array.dtype, dtype, "same_kind"):
                return None
            arrays.append(np.ascontiguousarray(array, dtype))
        return tuple(arrays)

    def _answer(self, rows: int) -> _Answer:
        answer = self._answers.get(rows)
        if answer is None:
            if len(self._answers) == _ANSWERS:
                del self._answers[next(iter(self._answers))]
            answer = self._answers[rows] = _Answer(self.spec, rows, self._memories)
        return answer


_ANSWERS = 16
"""How many batch sizes keep their arrays, so that varying batch sizes do not fill the memory."""


class _Answer:
    """The arrays that decisions for a number of rows are written to."""

    def __init__(self, spec: PolicySpec, rows: int, memories: Sequence[tuple[str, tuple[int, ...]]]) -> None:
        action = action_array(spec.action)
        self.rows = rows
        self.action = np.zeros((rows, *action.shape), action.dtype)
        self.log_prob = np.zeros(rows, np.float32) if spec.noted else None
        self.carry = tuple(np.zeros((rows, *shape), np.float32) for _, shape in memories)
        self.outcomes = np.zeros(rows, np.uint8)
        extras = {} if self.log_prob is None else {"log_prob": self.log_prob}
        self.decision = Decision(
            self.action, extras, dict(zip([name for name, _ in memories], self.carry, strict=True))
        )


def _plain(array: Array) -> Array:
    return array if array.flags.c_contiguous and array.dtype == np.float32 else np.ascontiguousarray(array, np.float32)

"""Chooses what runs a policy: numpy, or the native extension with one of its sets of kernels."""

from __future__ import annotations

import logging
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Protocol

from rl4sys.experience import Array, Arrays
from rl4sys.policy.native_extension import NativeUnavailable, is_native_broken, native_extension, native_problem
from rl4sys.policy.native_policy import NativePolicy
from rl4sys.policy.numpy_policy import Decision, NumpyPolicy
from rl4sys.policy.policy_spec import PolicySpec

_log = logging.getLogger(__name__)

NUMPY = "numpy"
"""The kernel set of the numpy runtime."""
_NATIVE = "native-"


class RuntimeChoice(StrEnum):
    """What a user can ask for."""

    AUTO = "auto"
    """The native runtime where it is installed, else numpy."""
    NUMPY = "numpy"
    NATIVE = "native"
    """The native runtime, or an error."""


class RunningPolicy(Protocol):
    """A policy that acts, whatever runs it. It is not thread-safe: give each thread its own."""

    spec: PolicySpec
    noise_size: int

    @property
    def is_finite(self) -> Callable[[Decision], bool]:
        """Whether a decision for one row is free of NaN and infinity; valid until the next decision."""

    def load(self, weights: Array) -> None:
        """Use these flat weights from the next decision on."""

    def initial_carry(self, rows: int) -> dict[str, Array]:
        """The carry at the start of an episode: zeros."""

    def act(self, observation: Arrays, noise: Array, carry: Arrays | None = None) -> Decision:
        """Choose an action for every row of the observation arrays [N, …], with uniform noise [N, noise_size]."""

    def act_on_row(self, columns: Arrays, row: int, noise: Array, carry: Arrays | None = None) -> Decision:
        """Choose an action for one row of columns [N, …] of the program's dtypes, with noise [1, noise_size]."""

    def act_on_rows(self, observation: Arrays, noise: Array, carry: Arrays | None = None) -> tuple[Decision, Array]:
        """Choose an action for every row of [N, …], with the same bits as `act_on_row` for each of them."""


def kernel_set(choice: RuntimeChoice = RuntimeChoice.AUTO) -> str:
    """The kernel set of a choice on this machine: `numpy`, `native-avx2` or another. Equal sets give equal bits."""
    if choice is RuntimeChoice.NUMPY:
        return NUMPY
    problem = native_problem()
    if problem is None:
        return _NATIVE + str(native_extension().kernel_sets()[0])
    if choice is RuntimeChoice.NATIVE:
        raise NativeUnavailable(f"{problem} Or choose `runtime: auto` or `runtime: numpy`.")
    if is_native_broken():
        _warn_once(problem)
    return NUMPY


def require_kernel_set(name: str) -> None:
    """Raise `NativeUnavailable` unless this machine has the kernel set."""
    if name == NUMPY:
        return
    here = native_extension().kernel_sets()
    if name.removeprefix(_NATIVE) not in here:
        raise NativeUnavailable(f"This machine has no kernel set '{name}', only {', '.join([NUMPY, *_named(here)])}.")


def run_policy(spec: PolicySpec, weights: Array | None = None, kernels: str = NUMPY) -> RunningPolicy:
    """The policy with this kernel set. numpy runs what no other set can run, such as heads that plan."""
    if kernels != NUMPY and NativePolicy.can_run(spec):
        return NativePolicy(spec, weights, kernels.removeprefix(_NATIVE))
    return NumpyPolicy(spec, weights)


def _named(sets: list[str]) -> list[str]:
    return [_NATIVE + name for name in sets]


@cache
def _warn_once(problem: str) -> None:
    _log.warning("%s Policies run with numpy meanwhile.", problem)

"""Ops that only some processes have: policies with them act where they are trained, and do not travel."""

from __future__ import annotations

from collections.abc import Iterable

from rl4sys.policy.compiled_op import Compiler
from rl4sys.policy.ops import COMPILERS
from rl4sys.policy.policy_spec import Op, PolicySpec, Program

TORCH_MODULE = "torch_module"
"""A user's `nn.Module` that has no counterpart in known ops; its setting `reason` says why."""
LOCAL_COMPILERS: dict[str, Compiler] = {}
"""Added by packages that bring what such ops need, such as torch. No client lists them when it joins."""


def compiler_of(kind: str) -> Compiler:
    """How an op is compiled in this process."""
    return COMPILERS[kind] if kind in COMPILERS else LOCAL_COMPILERS[kind]


def unknown_ops(programs: Iterable[Program]) -> list[Op]:
    """The ops that this process cannot run, one of each kind."""
    found = {op.kind: op for program in programs for op in program.ops}
    return [op for kind, op in sorted(found.items()) if kind not in COMPILERS and kind not in LOCAL_COMPILERS]


def cannot_travel(spec: PolicySpec) -> str | None:
    """Why a policy acts only where it is trained; None if it travels."""
    for op in spec.program.ops:
        if op.kind == TORCH_MODULE:
            return f"{op.settings['module']} runs with torch only: {op.settings['reason']}"
    return None

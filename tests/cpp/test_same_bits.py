"""The same kernel set decides with the same bits in C++ programs and in Python's native runtime."""

from __future__ import annotations

import json
import subprocess
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.conformance.golden import HEADS, Golden
from tests.cpp.programs import find_tool, needs_cpp

from rl4sys.policy import NativePolicy, native_extension, native_problem

pytestmark = [needs_cpp, pytest.mark.skipif(native_problem() is not None, reason="rl4sys-native is not installed")]

KERNELS = native_extension().kernel_sets() if native_problem() is None else []
NATIVE = [name for name, case in HEADS.items() if native_problem() is None and NativePolicy.can_run(case.spec)]


@cache
def decided_in_cpp(kernels: str) -> dict[str, dict[str, str]]:
    """The decisions of a C++ program, as bytes in hexadecimal, by the name of the golden case."""
    tool = find_tool()
    assert tool is not None
    program = tool.parents[1] / "policy" / "rl4sys_golden_decisions"
    done = subprocess.run([program, kernels], capture_output=True, text=True, timeout=60, check=True)
    found: dict[str, dict[str, str]] = json.loads(done.stdout)
    return found


def decided_in_python(case: Golden, kernels: str) -> dict[str, str]:
    """The same decisions by the extension."""
    policy = NativePolicy(case.spec, case.arrays["weights"], kernels)
    found = policy.act(case.group("observation"), case.arrays["noise"], case.group("carry") or None)
    rows = len(case.arrays["noise"])
    carry = [found.carry[memory.name].reshape(rows, -1) for memory in case.spec.program.carry]
    is_choice = found.action.dtype.kind != "f"
    return {
        "choices": _hex(found.action.astype(np.int64)) if is_choice else "",
        "numbers": "" if is_choice else _hex(found.action),
        "log_probs": _hex(found.extras["log_prob"]) if "log_prob" in found.extras else "",
        "carry": _hex(np.concatenate(carry, axis=1)) if carry else "",
    }


def _hex(array: Any) -> str:
    return str(np.ascontiguousarray(array).tobytes().hex())


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("name", NATIVE)
def test_a_policy_decides_with_the_same_bits(name: str, kernels: str) -> None:
    assert decided_in_python(HEADS[name], kernels) == decided_in_cpp(kernels)[name]

"""One decision with a policy that came from outside, before anything depends on it."""

from __future__ import annotations

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy import (
    COMPILERS,
    NumpyPolicy,
    PolicySpec,
    action_array,
    layout_of,
    output_size,
)
from rl4sys.wire.errors import ContractViolation

MOST_REGISTER_BYTES = 256 << 20
"""What the registers of one decision may take. A few short ops can ask for any amount: each may double the last one."""
_MOST_PADDING = 1 << 10


def require_decides(spec: PolicySpec) -> None:
    """Raise `ContractViolation` unless the policy can decide, about what it says it observes, within bounded memory.

    A message can be well formed and its shapes still contradict each other, which is only seen when it runs. Better
    here than in the middle of a live system.
    """
    try:
        scores = _registers(spec)[spec.head.inputs[0]]
        if scores.shape != (1, output_size(spec.action)):
            raise ValueError(f"its head reads {scores.shape[1:]} numbers for {output_size(spec.action)} outputs")
        _decide(spec)
    # Whatever a program from outside does wrong, it is the program that is wrong.
    except Exception as error:
        raise ContractViolation(
            f"The policy cannot be run here: {type(error).__name__}: {error}. Compare the versions of client and "
            f"server, and report it."
        ) from error


def _registers(spec: PolicySpec) -> dict[str, Array]:
    """The registers of one row, allocated and never touched."""
    program = spec.program
    registers = {array.name: np.zeros((1, *array.shape), array.dtype) for array in program.inputs}
    registers |= {memory.name: np.zeros((1, *memory.shape), np.float32) for memory in program.carry}
    if (chance := spec.head.chance) is not None:
        registers[chance.name] = np.zeros((1, *chance.shape), np.float32)
    taken = _require_room(sum(array.nbytes for array in registers.values()))
    layout = layout_of(program)
    tensors = layout.views(np.zeros(layout.size, np.float32))
    for op in program.ops:
        padding = op.settings.get("padding", 0)
        if isinstance(padding, int | float) and not 0 <= padding <= _MOST_PADDING:
            raise ValueError(f"op '{op.kind}' pads by {padding}; at most {_MOST_PADDING} is taken")
        arrays = [registers[name] for name in op.inputs]
        compiled = COMPILERS[op.kind](op, arrays, [tensors[name] for name in op.tensors])
        taken = _require_room(taken + sum(array.nbytes for array in compiled.outputs))
        registers |= zip(op.outputs, compiled.outputs, strict=True)
    return registers


def _require_room(taken: int) -> int:
    if taken > MOST_REGISTER_BYTES:
        raise ValueError(f"a decision takes more than {MOST_REGISTER_BYTES} bytes")
    return taken


def _decide(spec: PolicySpec) -> None:
    policy = NumpyPolicy(spec)
    # A mask allows everything; an index of a table is its first.
    observation = {
        array.name: np.full((1, *array.shape), array.dtype == "bool", array.dtype) for array in spec.observation
    }
    with np.errstate(all="ignore"):
        decision = policy.act(observation, np.zeros((1, policy.noise_size), np.float32), policy.initial_carry(1))
    action = action_array(spec.action)
    if decision.action.shape != (1, *action.shape) or decision.action.dtype != action.dtype:
        raise ValueError(f"it decides {decision.action.dtype}{decision.action.shape[1:]}; expected {action}")
    if decision.extras.keys() != {array.name for array in spec.noted}:
        raise ValueError(f"it notes {sorted(decision.extras)}; expected {[array.name for array in spec.noted]}")
    for memory in spec.program.carry:
        if decision.carry[memory.name].shape != (1, *memory.shape):
            raise ValueError(f"it changes the shape of its memory '{memory.name}'")

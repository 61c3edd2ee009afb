"""Checks of a policy that came from outside: whether its program is sound, and whether it can decide."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator

import numpy as np

from rl4sys.experience import Array, ArraySpec
from rl4sys.policy import (
    COMPILERS,
    Head,
    NumpyPolicy,
    PolicySpec,
    Program,
    action_array,
    layout_of,
    output_size,
)
from rl4sys.policy.chance import chance_registers
from rl4sys.policy.planned_head import MAX_PLANNED_STEPS, SearchSettings
from rl4sys.policy.policy_spec import number
from rl4sys.weights import Layout
from rl4sys.wire.errors import ContractViolation

MAX_WEIGHTS = 1 << 27
"""Values of all tensors together: half a gigabyte."""
MAX_REGISTER_BYTES = 256 << 20
"""Memory of the registers of one decision. A few short ops can ask for any amount: each may double the last one."""
_MAX_NOISE = 1 << 12
"""Normal numbers that a program reads in one decision."""
_MAX_PADDING = 1 << 10


def require_runnable(spec: PolicySpec) -> None:
    """Raise `ContractViolation` unless each register is assigned once, before it is read, and each tensor exists."""
    program, head = spec.program, spec.head
    tensors = _tensors(program)
    weights = sum(map(math.prod, tensors.values()))
    if weights > MAX_WEIGHTS:
        raise _broken(f"its tensors have {weights} values; at most {MAX_WEIGHTS} can be sent")
    try:
        program.require_small_carry()
    except ValueError as problem:
        raise ContractViolation(str(problem)) from problem
    registers = _run_by_name(program, (array.name for array in _head_chance(head)))
    _require("the head", head.inputs, registers)
    following = [memory.next for memory in program.carry]
    if not set(head.outputs) <= set(following):
        raise _broken(f"the head assigns {list(head.outputs)}, which no memory reads")
    _assign(head.outputs, registers)
    _require("the memory", following, registers)
    _require("the head", head.tensors, tensors)
    if head.mask is not None:
        _require("the mask", (head.mask,), {array.name for array in program.inputs})
    if head.count is not None:
        _require("the count", (head.count,), {array.name for array in program.inputs})
    _require_model(spec)


def _tensors(program: Program) -> dict[str, tuple[int, ...]]:
    tensors = {tensor.name: tensor.shape for tensor in program.tensors}
    if len(tensors) != len(program.tensors):
        raise _broken("two tensors have the same name")
    return tensors


def _run_by_name(program: Program, drawn_by_head: Iterable[str] = ()) -> set[str]:
    """The registers after the ops, each assigned once and before it is read."""
    tensors, registers = _tensors(program), set[str]()
    _assign((array.name for array in program.inputs), registers)
    _assign((memory.name for memory in program.carry), registers)
    _assign((chance.name for chance in program.chance), registers)
    _assign(drawn_by_head, registers)
    sizes = [chance.size for chance in program.chance]
    if min(sizes, default=1) < 1 or sum(sizes) > _MAX_NOISE:
        raise _broken(f"it draws {sizes[:8]} numbers; expected at least 1 for each and {_MAX_NOISE} together at most")
    for op in program.ops:
        _require(op.kind, op.inputs, registers)
        _require(op.kind, op.tensors, tensors)
        _assign(op.outputs, registers)
    return registers


def _require_model(spec: PolicySpec) -> None:
    """A head that plans, and no other, has a sound model over the policy's own tensors."""
    model = spec.model
    if (model is not None) != (spec.head.kind == "planned"):
        raise _broken(f"a head of kind {spec.head.kind} comes {'with' if model else 'without'} a model")
    if model is None:
        return
    registers = _run_by_name(model)
    _require("the memory of the model", (memory.next for memory in model.carry), registers)
    own = _tensors(spec.program)
    foreign = [name for name, shape in _tensors(model).items() if own.get(name) != shape]
    if foreign:
        raise _broken(f"its model reads the tensors {foreign[:4]}, which the program does not list in these shapes")


def _head_chance(head: Head) -> Iterator[ArraySpec]:
    """The register of normal numbers that the program reads, if there is one, with a valid size."""
    try:
        chance = head.chance
        if chance is None:
            return
        std = number(head.settings, "std", head.kind)
    except ValueError as problem:
        raise _broken(str(problem)) from problem
    if chance.shape[0] > _MAX_NOISE or std < 0.0:
        raise _broken(
            f"the head draws {chance.shape[0]} numbers of deviation {std}; expected at most {_MAX_NOISE}, of deviation "
            f"0 or more"
        )
    yield chance


def _assign(names: Iterable[str], registers: set[str]) -> None:
    for name in names:
        if not name or name in registers:
            raise _broken(f"the register '{name}' is assigned twice or has no name")
        registers.add(name)


def _require(reader: str, names: Iterable[str], known: Container[str]) -> None:
    missing = [name for name in names if name not in known]
    if missing:
        raise _broken(f"{reader} reads {missing[:4]}, which is not assigned by then")


def _broken(problem: str) -> ContractViolation:
    return ContractViolation(
        f"The policy's program is broken: {problem}. Compare the versions of client and server, and report it."
    )


def require_decides(spec: PolicySpec) -> None:
    """Raise `ContractViolation` unless the policy can decide on its declared observations within bounded memory.

    The shapes of a well-formed message may still contradict each other, which shows only when it runs. That must not
    happen in the middle of a live system.
    """
    try:
        scores = _registers(spec)[spec.head.inputs[0]]
        if spec.model is not None:
            _require_bounded_search(spec.head, spec.model, layout_of(spec.program))
        elif scores.shape != (1, output_size(spec.action)):
            raise ValueError(f"its head reads {scores.shape[1:]} numbers for {output_size(spec.action)} outputs")
        _decide(spec)
    # Any error of a program from outside is the fault of that program.
    except Exception as error:
        raise ContractViolation(
            f"The policy cannot be run here: {type(error).__name__}: {error}. Compare the versions of client and "
            f"server, and report it."
        ) from error


def _registers(spec: PolicySpec) -> dict[str, Array]:
    """The registers of one row, allocated but not computed."""
    return _run_by_shape(spec.program, chance_registers(spec, 1), layout_of(spec.program), rows=1)


def _require_bounded_search(head: Head, model: Program, layout: Layout) -> None:
    """Limit what a head that plans computes for one decision, and the memory that its candidates take."""
    settings = SearchSettings.of(head)
    steps = settings.horizon * settings.iterations * settings.candidates
    if steps > MAX_PLANNED_STEPS:
        raise ValueError(f"a decision predicts {steps} steps; at most {MAX_PLANNED_STEPS} are allowed")
    drawn = {chance.name: np.zeros((1, chance.size), np.float32) for chance in model.chance}
    _run_by_shape(model, drawn, layout, rows=settings.candidates)


def _run_by_shape(program: Program, drawn: dict[str, Array], layout: Layout, rows: int) -> dict[str, Array]:
    """The registers of one row, allocated but not computed, if as many rows as there will be fit into memory."""
    registers = {array.name: np.zeros((1, *array.shape), array.dtype) for array in program.inputs}
    registers |= {memory.name: np.zeros((1, *memory.shape), np.float32) for memory in program.carry}
    registers |= drawn
    taken = _require_memory(rows * sum(array.nbytes for array in registers.values()))
    tensors = layout.views(np.zeros(layout.size, np.float32))
    for op in program.ops:
        padding = op.settings.get("padding", 0)
        if isinstance(padding, int | float) and not 0 <= padding <= _MAX_PADDING:
            raise ValueError(f"op '{op.kind}' pads by {padding}; at most {_MAX_PADDING} is allowed")
        arrays = [registers[name] for name in op.inputs]
        compiled = COMPILERS[op.kind](op, arrays, [tensors[name] for name in op.tensors])
        taken = _require_memory(taken + rows * sum(array.nbytes for array in compiled.outputs))
        registers |= zip(op.outputs, compiled.outputs, strict=True)
    return registers


def _require_memory(taken: int) -> int:
    if taken > MAX_REGISTER_BYTES:
        raise ValueError(f"a decision takes more than {MAX_REGISTER_BYTES} bytes")
    return taken


def _decide(spec: PolicySpec) -> None:
    policy = NumpyPolicy(spec)
    # A mask allows every action; an index is 0; there are as many candidates as there can be.
    observation = {
        array.name: np.full((1, *array.shape), array.dtype == "bool", array.dtype) for array in spec.observation
    }
    if spec.head.count is not None:
        observation[spec.head.count].fill(output_size(spec.action))
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

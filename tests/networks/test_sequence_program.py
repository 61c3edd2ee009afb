"""Programs over streams: the same numbers as step by step, whatever the partition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from rl4sys.experience import ArraySpec
from rl4sys.networks import (
    BatchSplitter,
    Network,
    Optimizer,
    OptimizerSettings,
    Parameters,
    SequenceProgram,
    TorchProgram,
    TransformerConfig,
    stacked_parameters,
    uniform_fan_in,
)
from rl4sys.networks.sequence_parts import Cycle, Rows, Shift, parts_of
from rl4sys.policy import Memory, Op, Program, ProgramBuilder

STREAMS, LENGTH, WIDTH = 3, 11, 4


def _builder() -> ProgramBuilder:
    return ProgramBuilder((ArraySpec("seen", "float32", (WIDTH,)),))


def _stack(*kinds: str) -> Callable[[], tuple[Program, str]]:
    def build() -> tuple[Program, str]:
        builder = _builder()
        register = builder.activation(builder.linear("seen", 5, "in"), "tanh")
        for number, kind in enumerate(kinds):
            register = getattr(builder, kind)(register, 6, f"memory{number}")
        register = builder.linear(register, 2, "out")
        return builder.program(), register

    return build


def _feedback() -> tuple[Program, str]:
    """A GRU whose result passes a layer on its way back: a cycle of three ops, and a layer behind it."""
    builder = _builder()
    before = builder.linear("seen", 3, "before")
    memory = "kept"
    builder.input(ArraySpec(memory, "float32", (3,)))
    joined = builder.joined([before, memory])
    inner = builder.activation(builder.linear(joined, 3, "inner"), "tanh")
    output = builder.linear(inner, 2, "out")
    made = builder.program()
    return Program(made.inputs[:1], made.ops, made.tensors, (Memory(memory, (3,), inner),)), output


def _attention(window: int) -> Callable[[], tuple[Program, str]]:
    def build() -> tuple[Program, str]:
        builder = _builder()
        network = TransformerConfig(hidden_dims=(5,), units=6, heads=2, layers=2, window=window)
        register = builder.linear(network.body(builder, "seen", "actor"), 2, "out")
        return builder.program(), register

    return build


def _remembered() -> tuple[Program, str]:
    """The sum of what is seen and what was seen one step before."""
    ops = (Op("add", ("sum",), ("seen", "earlier")),)
    program = Program((ArraySpec("seen", "float32", (WIDTH,)),), ops, (), (Memory("earlier", (WIDTH,), "seen"),))
    return program, "sum"


PROGRAMS = {
    "lstm": _stack("lstm"),
    "gru": _stack("gru"),
    "lstm on gru": _stack("gru", "lstm"),
    "feedback": _feedback,
    "remembered": _remembered,
    "transformer": _attention(window=3),
    "transformer that sees everything": _attention(window=16),
}


def _parameters(program: Program) -> Parameters:
    parameters = Parameters(program.tensors, torch.device("cpu"))
    uniform_fan_in(parameters, torch.Generator().manual_seed(1))
    return parameters


def _streams(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(seed)
    seen = torch.from_numpy(rng.standard_normal((STREAMS, LENGTH, WIDTH)).astype(np.float32))
    return seen, torch.from_numpy(rng.random((STREAMS, LENGTH)) < 0.25)


def _carry(program: Program) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(2)
    carry = {m.name: torch.randn((STREAMS, *m.shape), generator=generator) for m in program.carry}
    # A ring cache that holds nothing, one row, and more than it has place for.
    counts = {name: torch.tensor([[0.0], [1.0], [4.0]]) for name in carry if name.endswith(".count")}
    return {**carry, **counts, **_written(carry, counts)}


def _written(carry: dict[str, torch.Tensor], counts: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Ring caches with zeros where nothing was written yet."""
    found = {}
    for name, count in counts.items():
        for part in ("keys", "values"):
            ring = f"{name.removesuffix('count')}{part}"
            slots = torch.arange(carry[ring].shape[1])
            found[ring] = carry[ring] * (slots < count).unsqueeze(-1)
    return found


def _step_by_step(
    program: Program, parameters: Parameters, output: str, seen: torch.Tensor, is_first: torch.Tensor
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    single, carry, found = TorchProgram(program, parameters), _carry(program), []
    for time in range(LENGTH):
        first = is_first[:, time]
        before = {
            m.name: carry[m.name].masked_fill(first.reshape(-1, *(1 for _ in m.shape)), 0.0) for m in program.carry
        }
        registers = single({"seen": seen[:, time]}, before)
        carry = {memory.name: registers[memory.next] for memory in program.carry}
        found.append(registers[output])
    return torch.stack(found, 1), carry


@pytest.mark.parametrize("build", PROGRAMS.values(), ids=PROGRAMS)
def test_streams_give_the_same_as_step_by_step(build: Callable[[], tuple[Program, str]]) -> None:
    (program, output), (seen, is_first) = build(), _streams()
    parameters = _parameters(program)
    wanted, last = _step_by_step(program, parameters, output, seen, is_first)
    run = SequenceProgram(program, parameters.views, [output])
    (found,), carry = run({"seen": seen}, is_first, _carry(program), wants_carry=True)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(run({"seen": seen}, is_first, _carry(program))[0][0], wanted, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(carry, last, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("build", PROGRAMS.values(), ids=PROGRAMS)
def test_gradients_are_those_of_the_plain_loop(build: Callable[[], tuple[Program, str]]) -> None:
    (program, output), (seen, is_first) = build(), _streams()
    parameters = _parameters(program)
    seen.requires_grad_()
    by_step = torch.autograd.grad(
        _step_by_step(program, parameters, output, seen, is_first)[0].square().sum(), [seen, *parameters.views.values()]
    )
    (found,), _ = SequenceProgram(program, parameters.views, [output])({"seen": seen}, is_first, _carry(program))
    at_once = torch.autograd.grad(found.square().sum(), [seen, *parameters.views.values()])
    for one, other in zip(at_once, by_step, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("build", PROGRAMS.values(), ids=PROGRAMS)
def test_nothing_before_the_start_of_an_episode_changes_anything_after_it(
    build: Callable[[], tuple[Program, str]],
) -> None:
    (program, output), (seen, _) = build(), _streams()
    is_first = torch.zeros(STREAMS, LENGTH, dtype=torch.bool)
    is_first[:, 5] = True
    run = SequenceProgram(program, _parameters(program).views, [output])
    (before,), _ = run({"seen": seen}, is_first, _carry(program))
    changed = seen.clone()
    changed[:, :5] = 1e3
    (after,), _ = run({"seen": changed}, is_first, None)
    torch.testing.assert_close(after[:, 5:], before[:, 5:], rtol=0, atol=0)


@pytest.mark.parametrize("build", PROGRAMS.values(), ids=PROGRAMS)
def test_members_have_memories_of_their_own(build: Callable[[], tuple[Program, str]]) -> None:
    (program, output), (seen, is_first) = build(), _streams()
    generator = torch.Generator().manual_seed(3)
    stacked = stacked_parameters(
        program, 2, (), torch.device("cpu"), lambda parameters: uniform_fan_in(parameters, generator)
    )
    (together,), carry = SequenceProgram(program, stacked.views, [output])(
        {"seen": seen}, is_first, _carry(program), wants_carry=True
    )
    for member in range(2 if program.tensors else 0):
        own = {name: view[member].detach() for name, view in stacked.views.items()}
        (alone,), last = SequenceProgram(program, own, [output])(
            {"seen": seen}, is_first, _carry(program), wants_carry=True
        )
        torch.testing.assert_close(together[member], alone, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close({n: m[member] for n, m in carry.items()}, last, rtol=1e-5, atol=1e-6)


def test_recurrent_layers_in_sequence_are_cycles_of_one_op_each() -> None:
    program, output = _stack("lstm", "gru")()
    kinds = [(type(part), [op.kind for op in getattr(part, "ops", ())]) for part in parts_of(program, [output])]
    assert kinds == [(Rows, ["linear", "tanh"]), (Cycle, ["lstm"]), (Cycle, ["gru"]), (Rows, ["linear"])]


def test_only_ops_on_the_cycle_are_in_the_loop() -> None:
    program, output = _feedback()
    kinds = [(type(part), [op.kind for op in getattr(part, "ops", ())]) for part in parts_of(program, [output])]
    assert kinds == [(Rows, ["linear"]), (Cycle, ["concat", "linear", "tanh"]), (Rows, ["linear"])]


def test_a_memory_of_something_known_is_a_shift() -> None:
    program, output = _remembered()
    assert [type(part) for part in parts_of(program, [output])] == [Shift, Rows]


def test_what_no_output_depends_on_is_left_out() -> None:
    program, _ = _stack("lstm")()
    assert parts_of(program, [program.ops[0].outputs[0]]) == [Rows(program.ops[:1])]


def test_a_network_with_memory_refuses_single_rows() -> None:
    program, output = _stack("lstm")()
    network = Network(program, [output], Optimizer(_parameters(program), OptimizerSettings(1e-3), BatchSplitter()))
    with pytest.raises(ValueError, match="call unroll"):
        network({"seen": torch.zeros(2, WIDTH)})


def test_a_missing_input_is_named() -> None:
    program, output = _stack("lstm")()
    with pytest.raises(ValueError, match="reads \\['seen'\\]; got \\['other'\\]"):
        SequenceProgram(program, _parameters(program).views, [output])(
            {"other": torch.zeros(1, 2, 4)}, torch.ones(1, 2)
        )


@pytest.mark.parametrize("members", [None, 2])
def test_streams_are_split_where_memory_is_short(members: int | None) -> None:
    (program, output), (seen, is_first) = _stack("lstm")(), _streams()
    parameters = _parameters(program)
    if members is not None:
        parameters = stacked_parameters(program, members, (), torch.device("cpu"), lambda p: None)
    splitter = BatchSplitter()
    network = Network(program, [output], Optimizer(parameters, OptimizerSettings(1e-3), splitter), target=True)
    with torch.no_grad():
        whole = network.unroll({"seen": seen}, is_first, _carry(program))
    splitter.parts = 2
    torch.testing.assert_close(network.target_unroll({"seen": seen}, is_first, _carry(program)), whole)

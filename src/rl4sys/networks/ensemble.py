"""Runs one program for several members at once, each with weights of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F

from rl4sys.networks.dense import FUSED, Chain, Layer, Workspace
from rl4sys.networks.initialize import uniform_fan_in
from rl4sys.networks.parameters import Parameters
from rl4sys.networks.passes import AutogradPass, ChainStep, DensePass, Pass, Registers, Step
from rl4sys.networks.program import FUNCTIONS, TensorMap
from rl4sys.policy import Op, Program, Tensor, UnknownOp
from rl4sys.policy.policy_spec import number

_ELEMENTWISE = ("tanh", "relu", "sigmoid", "silu", "gelu", "elu", "softplus", "leaky_relu", "add")


class EnsembleProgram:
    """A program whose fully connected layers run as chains, all members in one multiplication.

    A tensor with one axis more than the program declares holds a value for each member, and what is computed from it
    has a leading axis of members. Without any such tensor this is a program like any other, only faster.
    """

    def __init__(
        self, program: Program, tensors: Mapping[str, torch.Tensor], workspace: Workspace | None = None
    ) -> None:
        """Programs that take turns may share a workspace."""
        unknown = sorted({op.kind for op in program.ops} - FUNCTIONS.keys())
        if unknown:
            raise UnknownOp(f"Torch lacks the ops {unknown}; add them to rl4sys.networks.FUNCTIONS.")
        declared = {tensor.name: len(tensor.shape) for tensor in program.tensors}
        self._tensors = tensors
        self._workspace = workspace or Workspace()
        self._stacked_tensors = {name for name, axes in declared.items() if tensors[name].ndim > axes}
        self._members = max((len(tensors[name]) for name in self._stacked_tensors), default=1)
        self._stacked_registers: set[str] = set()
        self._readers = Counter(name for op in program.ops for name in op.inputs)
        self._steps = self._compile(list(program.ops))
        self._is_dense = self._computes_by_chains(program)

    def __call__(self, inputs: TensorMap) -> Registers:
        """All registers, by name. Those in the middle of a chain are left out."""
        registers = dict(inputs)
        for step in self._steps:
            step(registers)
        return registers

    def forward(self, inputs: TensorMap, differentiate: Sequence[str] = ()) -> Pass:
        """Run the program so that the gradients of its weights, or of some inputs, can follow."""
        if not self._is_dense:
            return AutogradPass(self, inputs, differentiate)
        registers, tape = dict(inputs), []
        with torch.no_grad():
            for step in self._steps:
                if isinstance(step, ChainStep):
                    tape.append((step, step.run(registers)))
                else:
                    step(registers)
        return DensePass(registers, tape, differentiate)

    def _computes_by_chains(self, program: Program) -> bool:
        """Whether nothing but chains comes after the first weight that is learned, so that autograd is not needed."""
        learned = {name for step in self._steps if isinstance(step, ChainStep) for name in step.tensors}
        others = {name for op in program.ops for name in op.tensors} - learned
        after: set[str] = set()
        for op in program.ops:
            if set(op.tensors) & learned or set(op.inputs) & after:
                after.update(op.outputs)
        chained = {name for step in self._steps if isinstance(step, ChainStep) for name in step.registers}
        return after <= chained and not any(self._tensors[name].requires_grad for name in others)

    def _compile(self, ops: list[Op]) -> list[Step]:
        steps: list[Step] = []
        place = 0
        while place < len(ops):
            taken = self._chain_at(ops, place)
            if taken:
                steps.append(self._chain(ops[place : place + taken]))
            elif self._runs_at_once(ops[place]):
                taken = 1
                steps.append(self._single(ops[place]))
            else:
                taken = self._line_at(ops, place)
                steps.append(self._one_by_one(ops[place : place + taken]))
            place += taken
        return steps

    def _chain_at(self, ops: Sequence[Op], place: int) -> int:
        """How many ops from here on make one chain; none if there is no layer to begin with.

        A concatenation that only a layer reads belongs to it: what is joined need not all be differentiated.
        """
        end = place
        if ops[end].kind == "concat" and end + 1 < len(ops) and self._only_reader(ops[end], ops[end + 1]):
            end += 1
        if not _is_layer(ops[end]):
            return 0
        while end + 1 < len(ops) and self._only_reader(ops[end], ops[end + 1]):
            following = ops[end + 1]
            if not (_is_layer(following) or (following.kind in FUSED and _is_layer(ops[end]))):
                break
            end += 1
        return end + 1 - place

    def _only_reader(self, op: Op, reader: Op) -> bool:
        return reader.inputs == op.outputs and self._readers[op.outputs[0]] == 1

    def _chain(self, ops: Sequence[Op]) -> Step:
        inputs, output = ops[0].inputs, ops[-1].outputs[0]
        layers: list[Layer] = []
        for op in ops:
            if _is_layer(op):
                layers.append(Layer(self._tensors[op.tensors[0]], self._tensors[op.tensors[1]], None))
            elif op.kind in FUSED:
                layers[-1] = layers[-1]._replace(activation=op.kind)
        self._note(ops, output)
        tensors = frozenset(name for op in ops for name in op.tensors)
        registers = frozenset(name for op in ops for name in op.outputs)
        return ChainStep(Chain(layers, self._workspace), inputs, output, tensors, registers)

    def _runs_at_once(self, op: Op) -> bool:
        """Whether an op can run for all members in one call, or is the same for all."""
        reads = [name in self._stacked_registers for name in op.inputs]
        owns = [name in self._stacked_tensors for name in op.tensors]
        return not any((*reads, *owns)) or op.kind in _ELEMENTWISE or (op.kind == "layer_norm" and all((*reads, *owns)))

    def _line_at(self, ops: Sequence[Op], place: int) -> int:
        """How many ops from here on, none of them part of a chain, are read by the next one only."""
        end = place + 1
        while end < len(ops) and self._only_reader(ops[end - 1], ops[end]) and not self._chain_at(ops, end):
            end += 1
        return end - place

    def _single(self, op: Op) -> Step:
        function, tensors = FUNCTIONS[op.kind], [self._tensors[name] for name in op.tensors]
        self._note([op], *op.outputs)
        if op.kind == "layer_norm" and op.outputs[0] in self._stacked_registers:
            return self._layer_norm(op)

        def run(registers: Registers) -> None:
            outputs = function(op, [registers[name] for name in op.inputs], tensors)
            registers |= zip(op.outputs, outputs, strict=True)

        return run

    def _one_by_one(self, ops: Sequence[Op]) -> Step:
        """Ops one after the other, member by member; only what the last one gives is put together."""
        inputs, outputs = ops[0].inputs, ops[-1].outputs
        is_stacked = [name in self._stacked_registers for name in inputs]
        names = [name for op in ops for name in op.tensors]
        owned = [name in self._stacked_tensors for name in names]
        self._note(ops, *outputs)

        def run(registers: Registers) -> None:
            arrays = self._apart([registers[name] for name in inputs], is_stacked)
            weights = self._apart([self._tensors[name] for name in names], owned)
            results = [_run_line(ops, *own) for own in zip(arrays, weights, strict=True)]
            registers |= {name: torch.stack(each) for name, *each in zip(outputs, *results, strict=True)}

        return run

    def _apart(self, arrays: Sequence[torch.Tensor], owned: Sequence[bool]) -> list[list[torch.Tensor]]:
        """For each member what is its own of some arrays, and the others as they are."""
        spread = [a.unbind() if own else (a,) * self._members for a, own in zip(arrays, owned, strict=True)]
        return [[each[member] for each in spread] for member in range(self._members)]

    def _layer_norm(self, op: Op) -> Step:
        gain, bias = (self._tensors[name] for name in op.tensors)
        epsilon = number(op.settings, "epsilon", "op 'layer_norm'")

        def run(registers: Registers) -> None:
            x = registers[op.inputs[0]]
            level = F.layer_norm(x, x.shape[-1:], eps=epsilon)
            registers[op.outputs[0]] = torch.addcmul(bias.unsqueeze(1), level, gain.unsqueeze(1))

        return run

    def _note(self, ops: Sequence[Op], *outputs: str) -> None:
        """Remember whether these ops give each member a result of its own."""
        reads = {name for op in ops for name in op.inputs}
        weights = {name for op in ops for name in op.tensors}
        if reads & self._stacked_registers or weights & self._stacked_tensors:
            self._stacked_registers.update(outputs)


def _run_line(ops: Sequence[Op], arrays: list[torch.Tensor], weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """Ops of which each reads what the one before gives; the weights are those of all, in order."""
    taken = 0
    for op in ops:
        tensors = weights[taken : taken + len(op.tensors)]
        arrays, taken = list(FUNCTIONS[op.kind](op, arrays, tensors)), taken + len(tensors)
    return arrays


def _is_layer(op: Op) -> bool:
    return op.kind == "linear" and len(op.tensors) == 2


def stacked_parameters(
    program: Program, members: int, shared: Sequence[str], device: torch.device, generator: torch.Generator
) -> Parameters:
    """Parameters with a leading axis of members for every tensor but the shared ones, each member drawn apart."""
    tensors = [t if t.name in shared else Tensor(t.name, (members, *t.shape)) for t in program.tensors]
    parameters = Parameters(tensors, device)
    parameters.freeze(*shared)
    single = Parameters(program.tensors, torch.device("cpu"))
    for member in range(members):
        uniform_fan_in(single, generator)
        with torch.no_grad():
            for name, view in single.views.items():
                (parameters.views[name] if name in shared else parameters.views[name][member]).copy_(view)
    return parameters

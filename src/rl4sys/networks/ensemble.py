"""Programs compiled for training: fused layers, and several members with weights of their own in one call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TypeAlias

import torch
import torch.nn.functional as F

from rl4sys.networks.candidate_functions import CandidateChain
from rl4sys.networks.initialize import Initializer
from rl4sys.networks.layer_chain import FUSED, BufferPool, ChainStep, Layer, LayerChain, Registers
from rl4sys.networks.parameters import Parameters
from rl4sys.networks.program import FUNCTIONS
from rl4sys.policy import Op, Program, Tensor, UnknownOp
from rl4sys.policy.policy_spec import number

ProgramStep: TypeAlias = Callable[[Registers], None]
"""A part of a program: reads registers and assigns others."""
_ACTIVATIONS = ("tanh", "relu", "sigmoid", "silu", "gelu", "elu", "softplus", "leaky_relu")
_ELEMENTWISE = (*_ACTIVATIONS, "add", "scale", "multiply", "symlog", "log")
_LAST_AXIS = ("softmax", "gate", "latent", "candidate_pool")
"""Ops without weights over the last axes, whatever axes come before them."""


class EnsembleProgram:
    """A program whose fully connected layers run as chains, all members in one multiplication.

    A tensor with one axis more than the program declares holds a value for each member, and what is computed from it
    has a leading axis of members. Without any such tensor this is a program like any other, only faster.
    """

    def __init__(
        self,
        program: Program,
        tensors: Mapping[str, torch.Tensor],
        pool: BufferPool | None = None,
        *,
        fused: bool = True,
        keep: Collection[str] = (),
        stacked: Collection[str] = (),
    ) -> None:
        """Programs that take turns may share a pool. `fused` chains are one step of autograd each.

        Registers in the middle of a chain are left out, unless they are among those to `keep`. `stacked` inputs have an
        axis of members already.
        """
        unknown = sorted({op.kind for op in program.ops} - FUNCTIONS.keys())
        if unknown:
            raise UnknownOp(f"Torch lacks the ops {unknown}; add them to rl4sys.networks.FUNCTIONS.")
        declared = {tensor.name: len(tensor.shape) for tensor in program.tensors}
        self._tensors = tensors
        self._pool = pool or BufferPool()
        self._is_fused, self._keep = fused, frozenset(keep)
        self._stacked_tensors = {name for name, axes in declared.items() if tensors[name].ndim > axes}
        self._members = max((len(tensors[name]) for name in self._stacked_tensors), default=1)
        self._stacked_registers = set(stacked)
        self._readers = Counter(name for op in program.ops for name in op.inputs)
        self._convolved = {op.outputs[0] for op in program.ops if op.kind == "conv2d"}
        self.steps = self._compile(list(program.ops))

    def __call__(self, inputs: Mapping[str, torch.Tensor]) -> Registers:
        """All registers, by name, but for those in the middle of a chain."""
        registers = dict(inputs)
        for step in self.steps:
            step(registers)
        return registers

    @property
    def stacked_registers(self) -> frozenset[str]:
        """The registers that have an axis of members."""
        return frozenset(self._stacked_registers)

    def _compile(self, ops: list[Op]) -> list[ProgramStep]:
        steps: list[ProgramStep] = []
        place = 0
        while place < len(ops):
            taken = self._chain_at(ops, place)
            if taken:
                steps.append(self._chain(ops[place : place + taken]))
            elif taken := self._candidate_layers(ops, place):
                steps.append(self._candidates(ops[place : place + taken]))
            elif self._is_batched(ops[place]):
                taken = 1
                steps.append(self._single(ops[place]))
            else:
                taken = self._sequence_length(ops, place)
                steps.append(self._member_by_member(ops[place : place + taken]))
            place += taken
        return steps

    def _chain_at(self, ops: Sequence[Op], place: int) -> int:
        """How many ops from here on form one chain; 0 if there is no layer to start with.

        A concatenation that only a layer reads belongs to it: not all of its inputs need a gradient.
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
        return end + 1 - place + self._heads_after(ops, end)

    def _candidate_layers(self, ops: Sequence[Op], place: int) -> int:
        """How many ops from here on are layers over candidates, each read by the next one only.

        Only the first may read a context, and none reads what members have separately.
        """
        end = place
        while end < len(ops) and ops[end].kind == "candidate_linear":
            op = ops[end]
            if end > place and (ops[end - 1].outputs[0] != op.inputs[0] or len(op.inputs) > 2):
                break
            if end > place and (self._readers[op.inputs[0]] > 1 or op.inputs[0] in self._keep):
                break
            if end == place and self._stacked_registers.intersection(op.inputs):
                break
            end += 1
        return end - place

    def _candidates(self, ops: Sequence[Op]) -> ProgramStep:
        self._mark_stacked(ops, ops[-1].outputs[0])
        return CandidateChain(ops, self._tensors)

    def _heads_after(self, ops: Sequence[Op], end: int) -> int:
        """How many ops after a chain are its heads: layers that all read its result, which no other op reads."""
        result = ops[end].outputs[0]
        readers = ops[end + 1 : end + 1 + self._readers[result]]
        if len(readers) < 2 or result in self._keep:
            return 0
        return len(readers) if all(_is_layer(op) and op.inputs == (result,) for op in readers) else 0

    def _only_reader(self, op: Op, reader: Op) -> bool:
        name = op.outputs[0]
        return reader.inputs == op.outputs and self._readers[name] == 1 and name not in self._keep

    def _chain(self, ops: Sequence[Op]) -> ProgramStep:
        inputs = ops[0].inputs
        # Heads read the same register; a chain without them has one, its last layer.
        shared = [op for op in ops if op.inputs == ops[-1].inputs and _is_layer(op)] if _is_layer(ops[-1]) else []
        heads = shared if len(shared) > 1 else []
        outputs = tuple(op.outputs[0] for op in heads) or (ops[-1].outputs[0],)
        layers: list[Layer] = []
        for op in ops:
            if _is_layer(op):
                layers.append(Layer(self._tensors[op.tensors[0]], self._tensors[op.tensors[1]], None))
            elif op.kind in FUSED:
                layers[-1] = layers[-1]._replace(activation=op.kind)
        self._mark_stacked(ops, *outputs)
        count = len(layers) - len(outputs)
        return ChainStep(LayerChain(layers[:count], layers[count:], self._pool, fused=self._is_fused), inputs, outputs)

    def _is_batched(self, op: Op) -> bool:
        """Whether an op can run for all members in one call, or is the same for all."""
        reads = [name in self._stacked_registers for name in op.inputs]
        owns = [name in self._stacked_tensors for name in op.tensors]
        if not any((*reads, *owns)) or op.kind in _ELEMENTWISE + _LAST_AXIS:
            return True
        return op.kind == "layer_norm" and all((*reads, *owns))

    def _sequence_length(self, ops: Sequence[Op], place: int) -> int:
        """How many ops from here on, none of them part of a chain, are read by the next one only."""
        end = place + 1
        while end < len(ops) and self._only_reader(ops[end - 1], ops[end]) and not self._chain_at(ops, end):
            end += 1
        return end - place

    def _single(self, op: Op) -> ProgramStep:
        function, tensors = FUNCTIONS[op.kind], [self._tensors[name] for name in op.tensors]
        if op.kind == "relu" and self._is_convolved(op.inputs[0]):
            # Neither pass needs the sum of a convolution, which is large.
            function = lambda op, inputs, tensors: (torch.relu_(inputs[0]),)  # noqa: E731
        self._mark_stacked([op], *op.outputs)
        if op.kind == "layer_norm" and op.outputs[0] in self._stacked_registers:
            return self._layer_norm(op)

        def run(registers: Registers) -> None:
            outputs = function(op, [registers[name] for name in op.inputs], tensors)
            registers |= zip(op.outputs, outputs, strict=True)

        return run

    def _is_convolved(self, register: str) -> bool:
        """Whether this is the result of a convolution that one op reads."""
        return register in self._convolved and self._readers[register] == 1 and register not in self._keep

    def _member_by_member(self, ops: Sequence[Op]) -> ProgramStep:
        """Ops in sequence, member by member; only the results of the last one are stacked."""
        inputs, outputs = ops[0].inputs, ops[-1].outputs
        is_stacked = [name in self._stacked_registers for name in inputs]
        names = [name for op in ops for name in op.tensors]
        owned = [name in self._stacked_tensors for name in names]
        self._mark_stacked(ops, *outputs)

        def run(registers: Registers) -> None:
            arrays = self._per_member([registers[name] for name in inputs], is_stacked)
            weights = self._per_member([self._tensors[name] for name in names], owned)
            results = [_run_sequence(ops, *own) for own in zip(arrays, weights, strict=True)]
            registers |= {name: torch.stack(each) for name, *each in zip(outputs, *results, strict=True)}

        return run

    def _per_member(self, arrays: Sequence[torch.Tensor], owned: Sequence[bool]) -> list[list[torch.Tensor]]:
        """For each member its own slice of the stacked arrays, and the others whole."""
        spread = [a.unbind() if own else (a,) * self._members for a, own in zip(arrays, owned, strict=True)]
        return [[each[member] for each in spread] for member in range(self._members)]

    def _layer_norm(self, op: Op) -> ProgramStep:
        gain, bias = (self._tensors[name] for name in op.tensors)
        epsilon = number(op.settings, "epsilon", "op 'layer_norm'")

        def run(registers: Registers) -> None:
            x = registers[op.inputs[0]]
            level = F.layer_norm(x, x.shape[-1:], eps=epsilon)
            registers[op.outputs[0]] = torch.addcmul(bias.unsqueeze(1), level, gain.unsqueeze(1))

        return run

    def _mark_stacked(self, ops: Sequence[Op], *outputs: str) -> None:
        """Record whether these ops give each member a result of its own."""
        reads = {name for op in ops for name in op.inputs}
        weights = {name for op in ops for name in op.tensors}
        if reads & self._stacked_registers or weights & self._stacked_tensors:
            self._stacked_registers.update(outputs)


def _run_sequence(ops: Sequence[Op], arrays: list[torch.Tensor], weights: list[torch.Tensor]) -> list[torch.Tensor]:
    """Run ops of which each reads the result of the one before; the weights are those of all, in order."""
    taken = 0
    for op in ops:
        tensors = weights[taken : taken + len(op.tensors)]
        arrays, taken = list(FUNCTIONS[op.kind](op, arrays, tensors)), taken + len(tensors)
    return arrays


def _is_layer(op: Op) -> bool:
    return op.kind == "linear" and len(op.tensors) == 2


def stacked_parameters(
    program: Program, members: int, shared: Collection[str], device: torch.device, initialize: Initializer
) -> Parameters:
    """Parameters with a leading axis of members for every tensor but the shared ones, each member drawn separately."""
    tensors = [t if t.name in shared else Tensor(t.name, (members, *t.shape)) for t in program.tensors]
    parameters = Parameters(tensors, device)
    single = Parameters(program.tensors, torch.device("cpu"))
    for member in range(members):
        initialize(single)
        with torch.no_grad():
            for name, view in single.views.items():
                (parameters.views[name] if name in shared else parameters.views[name][member]).copy_(view)
    return parameters

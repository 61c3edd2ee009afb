"""Runs programs with memory over whole streams [B, L, …]: the same equations as step by step, in few calls.

Ops that lie on no cycle through memory run once over all rows. What remains are cycles: a single recurrent op runs in
its kernel, anything else in a loop over time that contains only the ops of the cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import torch

from rl4sys.networks.ensemble import EnsembleProgram
from rl4sys.networks.layer_chain import BufferPool, Registers
from rl4sys.networks.sequence_kernels import KERNELS, has_kernel
from rl4sys.networks.sequence_parts import Cycle, Part, Rows, Shift, parts_of
from rl4sys.networks.stream_batch import StreamRun
from rl4sys.policy import Memory, Op, Program

Stage: TypeAlias = Callable[[StreamRun], None]


class SequenceProgram:
    """A program compiled for streams; tensors may have a leading axis of members, as in `EnsembleProgram`."""

    def __init__(
        self,
        program: Program,
        tensors: Mapping[str, torch.Tensor],
        outputs: Sequence[str],
        pool: BufferPool | None = None,
        *,
        fused: bool = False,
    ) -> None:
        declared = {tensor.name: len(tensor.shape) for tensor in program.tensors}
        self._program, self._tensors, self._outputs = program, tensors, tuple(outputs)
        self._pool, self._is_fused = pool or BufferPool(), fused
        self._stacked_tensors = {name for name, axes in declared.items() if tensors[name].ndim > axes}
        self._members = max((len(tensors[name]) for name in self._stacked_tensors), default=1)
        self._stacked: set[str] = set()
        parts = parts_of(program, self._outputs)
        self._inputs = _read_from_outside(parts)
        read = _readers(parts, self._outputs)
        self._stages = [self._compile(part, read[number]) for number, part in enumerate(parts)]

    def __call__(
        self,
        inputs: Mapping[str, torch.Tensor],
        is_first: torch.Tensor,
        carry: Mapping[str, torch.Tensor] | None = None,
        *,
        wants_carry: bool = False,
    ) -> tuple[list[torch.Tensor], Registers]:
        """The outputs, [B, L, …] or with a leading axis of members, and the carry after the last rows if wanted.

        Inputs are [B, L, …]. The carry is [B, …], or [n, B, …] for members; without it memory starts as zeros.
        """
        if missing := self._inputs - inputs.keys():
            raise ValueError(f"The network reads {sorted(missing)}; got {sorted(inputs)}. Pass what is missing, too.")
        flat = {name: inputs[name].flatten(0, 1) for name in self._inputs}
        run = StreamRun(is_first, carry or {}, flat, wants_carry)
        for stage in self._stages:
            stage(run)
        found = [run.by_time(run.registers[name], name in self._stacked) for name in self._outputs]
        return found, run.last

    def _compile(self, part: Part, read: Collection[str]) -> Stage:
        match part:
            case Rows():
                return self._rows(part, read)
            case Shift():
                return self._shift(part)
            case Cycle(ops=(op,)) if has_kernel(op, part.memories) and set(read) <= {op.outputs[0]}:
                return self._kernel(part)
            case Cycle():
                return self._loop(part, read)

    def _rows(self, part: Rows, read: Collection[str]) -> Stage:
        compiled = self._ensemble(part.ops, read)
        self._stacked |= compiled.stacked_registers

        def run_rows(run: StreamRun) -> None:
            for step in compiled.steps:
                step(run.registers)

        return run_rows

    def _shift(self, part: Shift) -> Stage:
        """A memory of what is known for all rows already, such as the previous action."""
        memory, is_stacked = part.memory, part.memory.next in self._stacked
        if is_stacked:
            self._stacked.add(memory.name)
        members, axis = (self._members, 2) if is_stacked else (None, 1)

        def shift(run: StreamRun) -> None:
            following = run.by_time(run.registers[memory.next].to(torch.float32), is_stacked)
            initial = run.memory(memory, members).unsqueeze(axis)
            before = torch.cat([initial, following.narrow(axis, 0, run.length - 1)], axis)
            forgets = run.is_first.reshape(*run.is_first.shape, *(1 for _ in memory.shape))
            run.registers[memory.name] = before.masked_fill(forgets, 0.0).flatten(axis - 1, axis)
            run.last[memory.name] = following.select(axis, -1)

        return shift

    def _kernel(self, part: Cycle) -> Stage:
        (op,) = part.ops
        kernel, first = KERNELS[op.kind]
        by_name = {memory.name: memory for memory in part.memories}
        memories = [by_name[name] for name in op.inputs[first:]]
        reads = [name in self._stacked for name in op.inputs[:first]]
        owns = [name in self._stacked_tensors for name in op.tensors]
        is_stacked = any((*reads, *owns))
        if is_stacked:
            self._stacked.add(op.outputs[0])
        members = self._members if is_stacked else None

        def run_kernel(run: StreamRun) -> None:
            rows = [run.registers[name] for name in op.inputs[:first]]
            before = [run.memory(memory, members) for memory in memories]
            tensors = [self._tensors[name] for name in op.tensors]
            if members is None:
                result, after = kernel(op, run, rows, before, tensors)
            else:
                spread = [_per_member(rows, reads, members), _per_member(before, [True] * len(before), members)]
                spread.append(_per_member(tensors, owns, members))
                each = [kernel(op, run, *own) for own in zip(*spread, strict=True)]
                result = torch.stack([own for own, _ in each])
                after = [torch.stack(own) for own in zip(*(last for _, last in each), strict=True)]
            run.registers[op.outputs[0]] = result
            run.last.update(zip((memory.name for memory in memories), after, strict=False))

        return run_kernel

    def _loop(self, part: Cycle, read: Collection[str]) -> Stage:
        written = {name for op in part.ops for name in op.outputs} | {memory.name for memory in part.memories}
        outside = sorted({name for op in part.ops for name in op.inputs} - written)
        owned = {name for op in part.ops for name in op.tensors}
        is_stacked = bool(owned & self._stacked_tensors or self._stacked.intersection(outside))
        if is_stacked:
            self._stacked |= written
        compiled = self._ensemble(part.ops, {*read, *(memory.next for memory in part.memories)})
        members = self._members if is_stacked else None

        def run_loop(run: StreamRun) -> None:
            columns = {name: _by_step(run, run.registers[name], name in self._stacked) for name in outside}
            forgets, any_first = run.is_first.unbind(1), run.is_first.any(0).tolist()
            memory = {each.name: run.memory(each, members) for each in part.memories}
            found: dict[str, list[torch.Tensor]] = {name: [] for name in read}
            for time in range(run.length):
                if any_first[time]:
                    memory = {
                        each.name: memory[each.name].masked_fill(_over(forgets[time], each), 0.0)
                        for each in part.memories
                    }
                registers = {name: column[time] for name, column in columns.items()} | memory
                for step in compiled.steps:
                    step(registers)
                for name, values in found.items():
                    values.append(registers[name])
                memory = {each.name: registers[each.next] for each in part.memories}
            axis = 2 if is_stacked else 1
            for name, values in found.items():
                run.registers[name] = torch.stack(values, axis).flatten(axis - 1, axis)
            run.last |= memory

        return run_loop

    def _ensemble(self, ops: Sequence[Op], keep: Collection[str]) -> EnsembleProgram:
        program = replace(self._program, ops=tuple(ops))
        return EnsembleProgram(
            program, self._tensors, self._pool, fused=self._is_fused, keep=keep, stacked=self._stacked
        )


def _by_step(run: StreamRun, register: torch.Tensor, stacked: bool) -> Sequence[torch.Tensor]:
    return run.by_time(register, stacked).unbind(2 if stacked else 1)


def _over(forgets: torch.Tensor, memory: Memory) -> torch.Tensor:
    """[B] with one axis for each of the memory's, so that it applies to [B, …] and to [n, B, …]."""
    return forgets.reshape(-1, *(1 for _ in memory.shape))


def _per_member(arrays: Sequence[torch.Tensor], owned: Sequence[bool], members: int) -> list[list[torch.Tensor]]:
    """For each member its own slice of the stacked arrays, and the others whole."""
    spread = [array.unbind() if own else (array,) * members for array, own in zip(arrays, owned, strict=True)]
    return [[each[member] for each in spread] for member in range(members)]


def _read_from_outside(parts: Sequence[Part]) -> set[str]:
    """Registers that no part assigns: observations, actions and other inputs."""
    return {name for part in parts for name in part.reads} - {name for part in parts for name in part.writes}


def _readers(parts: Sequence[Part], outputs: Sequence[str]) -> list[set[str]]:
    """For each part, which of its registers others read, or are outputs."""
    found = []
    for part in parts:
        others = {name for other in parts if other is not part for name in other.reads} | set(outputs)
        found.append(others & part.writes)
    return found

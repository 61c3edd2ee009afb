"""Runs a dynamics model with numpy: what follows from an action, for many candidates at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.compiled_op import Thunk, buffer
from rl4sys.policy.ops import COMPILERS
from rl4sys.policy.policy_spec import Program


class ModelRuntime:
    """A model compiled for so many rows. Its memory is the state that it predicts from, step by step."""

    def __init__(self, model: Program, reward: str, tensors: Mapping[str, Array], rows: int) -> None:
        """`reward` names the register [1] with the predicted reward."""
        if len(model.inputs) != 1 or not model.carry:
            raise ValueError(
                f"A model has one input, the action, and memory for its state; got the inputs "
                f"{[array.name for array in model.inputs]} and {len(model.carry)} arrays of memory."
            )
        self.action = buffer((rows, *model.inputs[0].shape))
        """[rows, …]: write the actions of the next step here, as networks see them."""
        self._memory = {memory.name: buffer((rows, *memory.shape)) for memory in model.carry}
        drawn = {chance.name: buffer((rows, chance.size)) for chance in model.chance}
        registers: dict[str, Array] = {model.inputs[0].name: self.action} | self._memory | drawn
        calls: list[Thunk] = []
        for op in model.ops:
            arrays, weights = [registers[name] for name in op.inputs], [tensors[name] for name in op.tensors]
            compiled = COMPILERS[op.kind](op, arrays, weights)
            registers |= zip(op.outputs, compiled.outputs, strict=True)
            calls += compiled.calls
        self._calls = calls
        self._draws = [_draw(chance.distribution, drawn[chance.name]) for chance in model.chance]
        self._following = [registers[memory.next] for memory in model.carry]
        # One memory may follow another, whose old value is then needed: staged before any is written.
        self._is_staged = any(memory.next in self._memory for memory in model.carry)
        self.reward = registers[reward][:, 0]
        """[rows]: the predicted reward of the last step."""

    @property
    def state(self) -> Sequence[Array]:
        """The present state of every row, in the order of the model's memory."""
        return list(self._memory.values())

    def start(self, state: Sequence[Array]) -> None:
        """Let every row begin in a state, given in the order of the model's memory."""
        for memory, initial in zip(self._memory.values(), state, strict=True):
            np.copyto(memory, initial)

    def step(self, generator: np.random.Generator) -> None:
        """Predict one step with the actions in `action`; chance is drawn from the generator."""
        for draw in self._draws:
            draw(generator)
        for call in self._calls:
            call()
        following = [array.copy() for array in self._following] if self._is_staged else self._following
        for memory, new in zip(self._memory.values(), following, strict=True):
            np.copyto(memory, new)


def _draw(distribution: str, register: Array) -> Callable[[np.random.Generator], object]:
    if distribution == "normal":
        return lambda generator: generator.standard_normal(dtype=np.float32, out=register)
    return lambda generator: generator.random(dtype=np.float32, out=register)

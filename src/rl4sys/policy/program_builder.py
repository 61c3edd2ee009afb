"""Builds programs: keeps track of registers, their shapes and their tensors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from rl4sys.experience import ArraySpec
from rl4sys.policy.candidates import COUNT
from rl4sys.policy.policy_spec import Chance, Distribution, Memory, Op, Program, Setting, Tensor

MASK = "action_mask"
"""The observation that marks allowed choices. Heads read it; networks do not."""


class ProgramBuilder:
    """Adds ops in order; each method returns the register of its result."""

    def __init__(self, inputs: tuple[ArraySpec, ...]) -> None:
        self._inputs = inputs
        self._shapes: dict[str, tuple[int, ...]] = {spec.name: spec.shape for spec in inputs}
        self._ops: list[Op] = []
        self._tensors: dict[str, Tensor] = {}
        self._carry: list[Memory] = []
        self._hidden: set[str] = set()
        self._chance: list[Chance] = []

    def shape(self, register: str) -> tuple[int, ...]:
        """The shape of one row of a register."""
        return self._shapes[register]

    def size(self) -> int:
        """Numbers in all registers of one row together."""
        return sum(map(math.prod, self._shapes.values()))

    def input(self, spec: ArraySpec) -> str:
        """Add an input, such as the action of a critic. Features that were made before do not contain it."""
        self._inputs = (*self._inputs, spec)
        return self._declare(spec.name, spec.shape)

    def chance(self, name: str, size: int, distribution: Distribution | None = None) -> str:
        """A register of random numbers, drawn before the program runs.

        Without a distribution they are those of a `noise_conditioned` head, whose settings noise and size define them.
        """
        if distribution is not None:
            self._chance.append(Chance(name, size, distribution))
        return self._declare(name, (size,))

    def memory(self, name: str, shape: tuple[int, ...], following: str = "") -> str:
        """An array of the carry, zeros at an episode's start, that takes the value of the register `following`.

        That register may be assigned later, by an op or by the head (its setting `action` or `next`); without its
        name, `remember` gives it.
        """
        self._carry.append(Memory(name, shape, following))
        return self._declare(name, shape)

    def remember(self, memory: str, register: str) -> None:
        """Let a memory take the value of a register after each decision."""
        self._carry = [replace(one, next=register) if one.name == memory else one for one in self._carry]

    def tensor(self, name: str, *shape: int) -> str:
        """Declare a tensor, or refer to one that was declared with the same shape."""
        declared = self._tensors.setdefault(name, Tensor(name, shape))
        if declared.shape != shape:
            raise ValueError(f"Tensor '{name}' has shape {declared.shape}; it cannot also have {shape}.")
        return name

    def op(
        self,
        kind: str,
        inputs: tuple[str, ...],
        shape: tuple[int, ...],
        tensors: tuple[str, ...] = (),
        **settings: Setting,
    ) -> str:
        """Add an op with one output of the given shape."""
        register = self._declare(self._unused(), shape)
        self._ops.append(Op(kind, (register,), inputs, tensors, settings))
        return register

    def linear(self, register: str, size: int, name: str) -> str:
        """A matrix product and a bias; `name` is the prefix of its two tensors."""
        (width,) = self.shape(register)
        tensors = self.tensor(f"{name}.weight", width, size), self.tensor(f"{name}.bias", size)
        return self.op("linear", (register,), (size,), tensors)

    def activation(self, register: str, kind: str) -> str:
        """One of the activations, such as `tanh` or `relu`."""
        settings: dict[str, Setting] = {"slope": 0.01} if kind == "leaky_relu" else {}
        return self.op(kind, (register,), self.shape(register), (), **settings)

    def layer_norm(self, register: str, name: str) -> str:
        """Zero mean and unit variance over the last axis, then a learned gain and bias."""
        size = self.shape(register)[-1]
        tensors = self.tensor(f"{name}.gain", size), self.tensor(f"{name}.bias", size)
        return self.op("layer_norm", (register,), self.shape(register), tensors, epsilon=1e-5)

    def gru(self, register: str, size: int, name: str) -> str:
        """A gated recurrent unit whose memory is part of the carry."""
        (width,) = self.shape(register)
        memory = self._declare(f"{name}.hidden", (size,))
        tensors = (
            self.tensor(f"{name}.input_weight", width, 3 * size),
            self.tensor(f"{name}.hidden_weight", size, 3 * size),
            self.tensor(f"{name}.input_bias", 3 * size),
            self.tensor(f"{name}.hidden_bias", 3 * size),
        )
        result = self.op("gru", (register, memory), (size,), tensors)
        self._carry.append(Memory(memory, (size,), result))
        return result

    def lstm(self, register: str, size: int, name: str) -> str:
        """A long short-term memory whose two memories are part of the carry."""
        (width,) = self.shape(register)
        hidden, cell = self._declare(f"{name}.hidden", (size,)), self._declare(f"{name}.cell", (size,))
        tensors = (
            self.tensor(f"{name}.input_weight", width, 4 * size),
            self.tensor(f"{name}.hidden_weight", size, 4 * size),
            self.tensor(f"{name}.input_bias", 4 * size),
            self.tensor(f"{name}.hidden_bias", 4 * size),
        )
        result = self._declare(self._unused(), (size,))
        outputs = (result, self._declare(f"{result}.cell", (size,)))
        self._ops.append(Op("lstm", outputs, (register, hidden, cell), tensors))
        self._carry += [Memory(hidden, (size,), outputs[0]), Memory(cell, (size,), outputs[1])]
        return result

    def multiply(self, first: str, second: str) -> str:
        """The product of two registers of one shape, elementwise."""
        return self.op("multiply", (first, second), self.shape(first))

    def symlog(self, register: str) -> str:
        """sign(x) · log(1 + |x|), which keeps large numbers small."""
        return self.op("symlog", (register,), self.shape(register))

    def log(self, register: str) -> str:
        """The natural logarithm, of positive numbers."""
        return self.op("log", (register,), self.shape(register))

    def softmax(self, register: str, groups: int = 1) -> str:
        """A vector of so many equal parts, each normalised to probabilities."""
        return self.op("softmax", (register,), self.shape(register), groups=groups)

    def grouped_linear(self, register: str, size: int, groups: int, name: str) -> str:
        """A block-diagonal product and a bias: part i of the vector makes part i of the result."""
        width = self._part(register, groups)
        if size % groups:
            raise ValueError(f"{groups} groups do not divide {size} numbers equally.")
        tensors = self.tensor(f"{name}.weight", groups, width, size // groups), self.tensor(f"{name}.bias", size)
        return self.op("grouped_linear", (register,), (size,), tensors)

    def gate(self, register: str, state: str, groups: int = 1, update_bias: float = -1.0) -> str:
        """The next state from (reset, candidate, update) of each group, and the state."""
        self._part(state, groups)
        return self.op("gate", (register, state), self.shape(state), groups=groups, update_bias=update_bias)

    def latent(self, logits: str, groups: int, uniform: str | None = None, *, unimix: float = 0.01) -> str:
        """One-hot vectors, one for each group: drawn with uniform numbers, or without them the likeliest."""
        self._part(logits, groups)
        inputs = (logits,) if uniform is None else (logits, uniform)
        draw = uniform is not None
        return self.op("latent", inputs, self.shape(logits), groups=groups, unimix=unimix, draw=draw)

    def attention(self, query: str, key: str, value: str, *, heads: int, window: int, name: str) -> str:
        """What a query finds in the last `window` decisions, this one included; their keys and values are carried."""
        (size,) = self.shape(query)
        self._part(query, heads)
        result = self._declare(self._unused(), (size,))
        memory = {f"{name}.keys": (window, size), f"{name}.values": (window, size), f"{name}.count": (1,)}
        for part, shape in memory.items():
            self.memory(part, shape, self._declare(f"{part}.next", shape))
        outputs = (result, *(f"{part}.next" for part in memory))
        bias = self.tensor(f"{name}.bias", heads, window)
        self._ops.append(Op("attention", outputs, (query, key, value, *memory), (bias,), {"heads": heads}))
        return result

    def candidate_linear(
        self, rows: str, size: int, name: str, *, context: str | None = None, activation: str = "none"
    ) -> str:
        """One layer for all candidates [N, F]: each row, with the context beside it, becomes a row of [N, size]."""
        most, features = self.shape(rows)
        inputs = (rows, COUNT) if context is None else (rows, COUNT, context)
        width = features + (0 if context is None else self.shape(context)[0])
        tensors = self.tensor(f"{name}.weight", width, size), self.tensor(f"{name}.bias", size)
        return self.op("candidate_linear", inputs, (most, size), tensors, activation=activation)

    def candidate_pool(self, rows: str) -> str:
        """The mean and the maximum of [N, F] over the candidates, and the logarithm of their number."""
        return self.op("candidate_pool", (rows, COUNT), (2 * self.shape(rows)[1] + 1,))

    def conv2d(self, register: str, filters: int, kernel: int, name: str, *, stride: int = 1, padding: int = 0) -> str:
        """A convolution over an image [channels, height, width] with square kernels and a bias for each filter."""
        channels, height, width = self.shape(register)
        if kernel > min(height, width) + 2 * padding:
            raise ValueError(f"A kernel of {kernel} × {kernel} does not fit into an image of {height} × {width}.")
        tensors = self.tensor(f"{name}.weight", filters, channels, kernel, kernel), self.tensor(f"{name}.bias", filters)
        rows, columns = ((length + 2 * padding - kernel) // stride + 1 for length in (height, width))
        return self.op("conv2d", (register,), (filters, rows, columns), tensors, stride=stride, padding=padding)

    def conv1d(self, register: str, filters: int, kernel: int, name: str, *, stride: int = 1, padding: int = 0) -> str:
        """A convolution over a sequence [channels, length] with a bias for each filter."""
        channels, length = self.shape(register)
        # Not "weight": one of three axes holds the blocks of a grouped layer, which are initialised one by one.
        tensors = self.tensor(f"{name}.kernel", filters, channels, kernel), self.tensor(f"{name}.bias", filters)
        shape = (filters, *_positions((length,), kernel, stride, padding))
        return self.op("conv1d", (register,), shape, tensors, stride=stride, padding=padding)

    def max_pool(self, register: str, kernel: int, *, stride: int, padding: int = 0) -> str:
        """The highest number of every window of a sequence [channels, length] or an image [channels, height, width]."""
        return self._pool("max_pool", register, kernel, stride, padding)

    def average_pool(self, register: str, kernel: int, *, stride: int, padding: int = 0) -> str:
        """The mean of every window of a sequence or an image; padding counts as zeros."""
        return self._pool("average_pool", register, kernel, stride, padding)

    def slice(self, register: str, start: int, stop: int, axis: int = 0) -> str:
        """The part from `start` to before `stop` of one axis."""
        shape = self.shape(register)
        if not (0 <= axis < len(shape) and 0 <= start < stop <= shape[axis]):
            raise ValueError(f"The part {start} to {stop} of axis {axis} does not exist in shape {shape}.")
        part = (*shape[:axis], stop - start, *shape[axis + 1 :])
        return self.op("slice", (register,), part, axis=axis, start=start, stop=stop)

    def reshape(self, register: str, shape: Sequence[int]) -> str:
        """The same numbers with other axes, last index fastest."""
        if math.prod(shape) != math.prod(self.shape(register)):
            raise ValueError(f"Shape {self.shape(register)} cannot become {tuple(shape)}: the numbers differ in count.")
        return self.op("reshape", (register,), tuple(shape), lengths=list(shape))

    def channels_first(self, register: str) -> str:
        """An image [height, width, channels] as [channels, height, width]."""
        height, width, channels = self.shape(register)
        return self.op("channels_first", (register,), (channels, height, width))

    def features(self, *, standardize: bool, clip: float = 10.0) -> str:
        """All observations but the mask as one flat vector; see `numbers`."""
        seen = self.observations()
        return self.joined([self.flat(self.numbers(spec, standardize=standardize, clip=clip)) for spec in seen])

    def observations(self) -> tuple[ArraySpec, ...]:
        """The inputs of a network: all but the mask."""
        seen = tuple(spec for spec in self._inputs if spec.name != MASK and spec.name not in self._hidden)
        if not seen:
            raise ValueError(
                f"There are no observations but {[spec.name for spec in self._inputs]}. "
                f"Add an observation; a constant is enough."
            )
        return seen

    @contextmanager
    def seeing(self, *names: str) -> Iterator[None]:
        """Let `observations` and `features` see only these inputs, for an encoder of their own."""
        hidden, self._hidden = self._hidden, {spec.name for spec in self._inputs} - set(names)
        try:
            yield
        finally:
            self._hidden = hidden

    def numbers(self, spec: ArraySpec, *, standardize: bool, clip: float = 10.0) -> str:
        """One observation as float32, in its own shape; bytes become numbers from 0 to 1.

        With `standardize`, tensors `NAME.mean` and `NAME.scale` hold the statistics of any other observation.
        """
        register = spec.name
        if spec.dtype == "uint8":
            return self.op("scale", (register,), spec.shape, factor=1.0 / 255.0, offset=0.0)
        if spec.dtype != "float32":
            register = self.op("scale", (register,), spec.shape, factor=1.0, offset=0.0)
        if standardize:
            statistics = (self.tensor(f"{spec.name}.{part}", *spec.shape) for part in ("mean", "scale"))
            register = self.op("standardize", (register,), spec.shape, tuple(statistics), clip=clip)
        return register

    def flat(self, register: str) -> str:
        """The same numbers as a vector."""
        shape = self.shape(register)
        return register if len(shape) == 1 else self.op("flatten", (register,), (math.prod(shape),))

    def joined(self, vectors: Sequence[str]) -> str:
        """Concatenate vectors."""
        if len(vectors) == 1:
            return vectors[0]
        return self.op("concat", tuple(vectors), (sum(self.shape(vector)[0] for vector in vectors),))

    def program(self) -> Program:
        """The finished program."""
        carry, chance = tuple(self._carry), tuple(self._chance)
        program = Program(self._inputs, tuple(self._ops), tuple(self._tensors.values()), carry, chance)
        program.require_small_carry()
        if forgotten := [memory.name for memory in carry if not memory.next]:
            raise ValueError(f"The memories {forgotten} take no value. Name one for each with `remember`.")
        return program

    def _pool(self, kind: str, register: str, kernel: int, stride: int, padding: int) -> str:
        channels, *lengths = self.shape(register)
        if not 1 <= len(lengths) <= 2 or 2 * padding > kernel:
            raise ValueError(
                f"Pooling takes [channels, length] or [channels, height, width], with padding of at most half the "
                f"window; got shape {self.shape(register)}, a window of {kernel} and padding {padding}."
            )
        shape = (channels, *_positions(lengths, kernel, stride, padding))
        return self.op(f"{kind}{len(lengths)}d", (register,), shape, kernel=kernel, stride=stride, padding=padding)

    def _part(self, register: str, groups: int) -> int:
        """The length of one of so many equal parts of a vector."""
        (width,) = self.shape(register)
        if groups < 1 or width % groups:
            raise ValueError(f"{groups} groups do not divide the {width} numbers of '{register}' equally.")
        return width // groups

    def _unused(self) -> str:
        """An unused register name; an observation may be called r0."""
        name = f"r{len(self._ops)}"
        while name in self._shapes:
            name += "_"
        return name

    def _declare(self, register: str, shape: tuple[int, ...]) -> str:
        if register in self._shapes:
            raise ValueError(f"Register '{register}' exists already; give this layer another name.")
        self._shapes[register] = shape
        return register


def _positions(lengths: Sequence[int], kernel: int, stride: int, padding: int) -> tuple[int, ...]:
    """How many windows fit along each axis."""
    if kernel > min(lengths) + 2 * padding:
        raise ValueError(f"A window of {kernel} does not fit into {tuple(lengths)} with padding {padding}.")
    return tuple((length + 2 * padding - kernel) // stride + 1 for length in lengths)

"""Ops that take a part of an array, or give it other axes."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.compiled_op import Compiled, buffer, op_whole
from rl4sys.policy.policy_spec import Op


def slice_part(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """The part from `start` to before `stop` of one axis, counted without the axis of rows."""
    (x,) = inputs
    axis, start, stop = (op_whole(op, name, 0) for name in ("axis", "start", "stop"))
    if axis + 1 >= x.ndim or not start < stop <= x.shape[axis + 1]:
        raise ValueError(f"Op 'slice' takes {start} to {stop} of axis {axis}; it reads shape {x.shape[1:]}.")
    part = x[(slice(None),) * (axis + 1) + (slice(start, stop),)]
    out = buffer(part.shape)
    return Compiled((out,), (partial(np.copyto, out, part),))


def reshape(op: Op, inputs: list[Array], tensors: list[Array]) -> Compiled:
    """The same numbers with the axes of the setting `lengths`, last index fastest."""
    (x,) = inputs
    return Compiled((x.reshape(len(x), *op_shape(op, x.shape[1:])),), ())


def op_shape(op: Op, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The setting `lengths` of an op that reads another shape; both must hold as many numbers."""
    wanted = op_lengths(op)
    if math.prod(wanted) != math.prod(shape):
        raise ValueError(f"Op '{op.kind}' makes shape {list(wanted)} of {list(shape)}; expected as many numbers.")
    return wanted


def op_lengths(op: Op) -> tuple[int, ...]:
    """The setting `lengths`: those of all axes, none of them empty."""
    wanted = op.settings.get("lengths")
    if not isinstance(wanted, list) or not wanted or any(length != int(length) or length < 1 for length in wanted):
        raise ValueError(f"Setting 'lengths' of op '{op.kind}' is {wanted!r}; expected a list of whole numbers from 1.")
    return tuple(int(length) for length in wanted)

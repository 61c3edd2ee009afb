"""Ops over windows, parts and axes of arrays, in torch: conv1d, pooling, slice and reshape."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F

from rl4sys.policy import Op
from rl4sys.policy.compiled_op import op_whole
from rl4sys.policy.shape_ops import op_shape

Many = Sequence[torch.Tensor]


def conv1d(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    """Cross-correlation over [N, C, L]."""
    kernel, bias = tensors
    x = inputs[0].to(torch.float32)
    return (F.conv1d(x, kernel, bias, op_whole(op, "stride", 1), op_whole(op, "padding", 0)),)


def pool(function: Callable[..., torch.Tensor], op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    """One number for every window, by a function of torch; padding is never the highest, and zero in a mean."""
    kernel, stride, padding = op_whole(op, "kernel", 1), op_whole(op, "stride", 1), op_whole(op, "padding", 0)
    return (function(inputs[0].to(torch.float32), kernel, stride, padding),)


def slice_part(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    """The part from `start` to before `stop` of one axis, counted without the axis of rows."""
    axis, start, stop = (op_whole(op, name, 0) for name in ("axis", "start", "stop"))
    return (inputs[0].to(torch.float32).narrow(axis + 1, start, stop - start),)


def reshape(op: Op, inputs: Many, tensors: Many) -> tuple[torch.Tensor, ...]:
    """The same numbers with the axes of the setting `lengths`."""
    x = inputs[0]
    return (x.reshape(len(x), *op_shape(op, tuple(x.shape[1:]))),)

"""The activations in numpy: functions of an array and of the array that takes their result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy.compiled_op import sigmoid

Activate = Callable[[Array, Array], object]


def _relu(x: Array, out: Array) -> None:
    np.maximum(x, np.float32(0.0), out=out)


def _silu(x: Array, out: Array) -> None:
    sigmoid(x, out)
    np.multiply(out, x, out)


def _gelu(x: Array, out: Array) -> None:
    # The tanh form (arXiv:1606.08415, sec. 2) needs no error function, which numpy lacks.
    np.multiply(np.float32(0.7978845608), x + np.float32(0.044715) * x * x * x, out)
    np.tanh(out, out)
    np.add(out, np.float32(1.0), out)
    np.multiply(out, x * np.float32(0.5), out)


def _elu(x: Array, out: Array) -> None:
    np.copyto(out, np.where(x > 0, x, np.expm1(np.minimum(x, 0))))


def softplus(x: Array) -> Array:
    """log(1 + e^x), without overflow."""
    return np.logaddexp(x, np.float32(0.0))


ACTIVATIONS: dict[str, Activate] = {
    "tanh": np.tanh,
    "relu": _relu,
    "sigmoid": sigmoid,
    "silu": _silu,
    "gelu": _gelu,
    "elu": _elu,
    "softplus": lambda x, out: np.copyto(out, softplus(x)),
}
"""The activations without settings, by name; x and the result must not overlap."""

"""Gradients of numpy functions in float64, to compare those of autograd with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from rl4sys.experience import Array

_STEP = 1e-6


def numerical_gradient(function: Callable[[Array], float], x: Array) -> Array:
    """The gradient of a number by x, from central differences; exact to about 1e-9 for smooth functions near 1."""
    gradient = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += _STEP
        down[place] -= _STEP
        gradient[place] = (function(up) - function(down)) / (2.0 * _STEP)
    return gradient

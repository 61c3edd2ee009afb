"""The optimal values of `rl4sys/Chain-v0`, which algorithms should find."""

from __future__ import annotations

import numpy as np

from rl4sys.experience import Array


def chain_values(n: int, small: float, gamma: float) -> Array:
    """V* of `ChainEnv`, [n]: from each state it is best to walk straight to one of the two ends."""
    state = np.arange(n)
    return np.asarray(np.maximum(gamma ** (n - 1 - state), small * gamma**state))

"""Two sizes of the same test: the usual one, and the large one of `make test-faults`.

`RL4SYS_STORM=1` is the full size and `RL4SYS_STORM=0.01` a hundredth of it, which takes minutes.
"""

from __future__ import annotations

import math
import os


def scaled(usual: int, storm: int) -> int:
    """The number of trials: `usual`, or with `RL4SYS_STORM` set, `storm` times its value, at least one."""
    scale = os.environ.get("RL4SYS_STORM")
    if scale is None:
        return usual
    return max(1, math.ceil(storm * float(scale)))

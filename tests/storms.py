"""Two sizes of the same test: the usual one, and the storm of `make test-faults`.

`RL4SYS_STORM=1` is the whole storm and `RL4SYS_STORM=0.01` a hundredth of it, to be tried in minutes.
"""

from __future__ import annotations

import math
import os


def scaled(usual: int, storm: int) -> int:
    """How many trials to make: `usual` of them, or in a storm `storm` times its scale, at least one."""
    scale = os.environ.get("RL4SYS_STORM")
    if scale is None:
        return usual
    return max(1, math.ceil(storm * float(scale)))

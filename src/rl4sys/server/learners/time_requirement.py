"""Whether a learner needs times: one that discounts by time cannot learn from decisions without them."""

from __future__ import annotations

import json
from functools import lru_cache

from rl4sys.wire import RefusalReason, SegmentRefused


def require_no_horizon(config: str, sequence: int) -> None:
    """Raise `SegmentRefused` for a segment without times if a learner, by its config in canonical form, needs them."""
    horizon = _horizon(config)
    if horizon is not None:
        raise SegmentRefused(
            RefusalReason.MALFORMED,
            f"Segment {sequence} has no times, and this learner discounts by them (algorithm.horizon is {horizon}). "
            f"Call act(observation, now=seconds), or leave horizon out.",
        )


@lru_cache(maxsize=1_024)
def _horizon(config: str) -> str | None:
    horizon = (json.loads(config) if config else {}).get("algorithm", {}).get("horizon")
    # Models of the world have a horizon in steps.
    return horizon if isinstance(horizon, str) else None

"""A small segment that matches `SCHEMA`, with optional changes."""

from typing import Any

import numpy as np

from rl4sys.experience import ArraySpec, Ending, Segment, SegmentSchema, StreamKey

SCHEMA = SegmentSchema(
    observation=(ArraySpec("queue", "float32", (2,)), ArraySpec("action_mask", "bool", (3,))),
    action=ArraySpec("action", "int64", ()),
    extras=(ArraySpec("log_prob", "float32", ()),),
    carry=(ArraySpec("core.hidden", "float32", (4,)),),
)


def segment(**changes: Any) -> Segment:
    parts: dict[str, Any] = {
        "stream": StreamKey("client"),
        "episode": 0,
        "start": 0,
        "policy_version": 0,
        "ending": Ending.CONTINUES,
        "observation": {"queue": np.zeros((4, 2), np.float32), "action_mask": np.ones((4, 3), bool)},
        "action": np.zeros(3, np.int64),
        "reward": np.zeros(3, np.float32),
        "extras": {"log_prob": np.zeros(3, np.float32)},
        "carry": {"core.hidden": np.zeros(4, np.float32)},
    }
    return Segment(**parts | changes)

from typing import Any

import numpy as np
import pytest

from rl4sys.experience import SchemaMismatch, StreamKey

from .segments import SCHEMA, segment

GOOD = segment()
NAN = np.array([0.0, np.nan, 0.0], np.float32)


def seen(name: str, array: Any) -> dict[str, Any]:
    return {"observation": {**GOOD.observation, name: array}}


MISMATCHES: list[tuple[dict[str, Any], str]] = [
    ({"observation": {}}, r"observation has arrays \[\]; expected \['action_mask', 'queue'\]"),
    (seen("queue", np.zeros((5, 2), np.float32)), r"observation 'queue' has shape \(5, 2\); expected \(4, 2\)"),
    (seen("queue", np.zeros((4, 3), np.float32)), r"observation 'queue' has shape \(4, 3\); expected \(4, 2\)"),
    (seen("queue", np.zeros((4, 2))), "observation 'queue' has dtype float64; expected float32"),
    (seen("action_mask", np.ones((4, 3), np.int8)), "'action_mask' has dtype int8; expected bool"),
    ({"action": np.zeros(4, np.int64)}, r"action has shape \(4,\); expected \(3,\)"),
    ({"action": np.zeros(3, np.int32)}, "action has dtype int32; expected int64"),
    ({"reward": np.zeros(3)}, "reward has dtype float64; expected float32"),
    ({"reward": NAN}, "reward contains NaN or infinity"),
    ({"extras": {}}, r"extras has arrays \[\]; expected \['log_prob'\]"),
    ({"extras": {"log_prob": NAN}}, "extras 'log_prob' contains NaN or infinity"),
    ({"carry": {"core.hidden": NAN}}, r"carry 'core.hidden' has shape \(3,\); expected \(4,\)"),
    ({"reward": np.zeros(0, np.float32)}, "the segment has no steps"),
    ({"start": -1}, "start -1, episode 0 and policy version 0 must not be negative"),
    ({"ending": 7}, "ending 7 is not one of CONTINUES, TERMINATED, TRUNCATED"),
]


def test_a_matching_segment_passes() -> None:
    SCHEMA.check(GOOD)


@pytest.mark.parametrize(("changes", "message"), MISMATCHES, ids=[message for _, message in MISMATCHES])
def test_the_error_names_the_mismatch(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        SCHEMA.check(segment(**changes))


def test_the_error_names_the_sender_and_what_to_do() -> None:
    stream = StreamKey("host-3", "disk", 2)
    with pytest.raises(SchemaMismatch, match=r"Stream host-3/disk/2, episode 4, step 9: .* Make the sender match"):
        SCHEMA.check(segment(stream=stream, episode=4, start=9, reward=NAN))

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rl4sys.state import (
    StateMismatch,
    digest,
    from_text,
    generator_state,
    join,
    require,
    restore_generator,
    split,
    to_text,
)

STATE: dict[str, Any] = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3),
    "nested": {"mask": np.array([True, False]), "count": 3, "nothing": None, "empty": np.zeros((0, 4))},
    "list": [np.array(1.5), {"deep": np.int64(7)}, "text"],
}


def test_a_state_survives_being_split_into_json_and_arrays() -> None:
    tree, arrays = split(STATE)
    assert digest(join(json.loads(json.dumps(tree)), arrays)) == digest(STATE)


def test_a_state_survives_being_sent_as_text() -> None:
    restored: Any = from_text(to_text(STATE))
    assert digest(restored) == digest(STATE)
    assert restored["weights"].flags.writeable


def test_a_name_with_a_slash_is_not_a_nested_name() -> None:
    state = {"a/b": np.zeros(1), "a": {"b": np.ones(1)}}
    restored: Any = join(*split(state))
    assert restored["a/b"].tolist() == [0.0]
    assert restored["a"]["b"].tolist() == [1.0]


@pytest.mark.parametrize("name", [3, "$array"])
def test_a_name_that_json_would_change_is_refused(name: Any) -> None:
    with pytest.raises(StateMismatch, match="has the name"):
        split({"lanes": {name: 1}})


@pytest.mark.parametrize(
    "other",
    [
        {**STATE, "weights": STATE["weights"].astype(np.float64)},
        {**STATE, "weights": STATE["weights"].reshape(3, 2)},
        {**STATE, "weights": STATE["weights"] + np.float32(1e-7)},
        {**STATE, "list": STATE["list"][:2]},
    ],
    ids=["dtype", "shape", "bytes", "plain value"],
)
def test_a_digest_depends_on(other: dict[str, Any]) -> None:
    assert digest(other) != digest(STATE)


def test_a_missing_or_unknown_part_is_named() -> None:
    with pytest.raises(StateMismatch, match=r"missing \['b'\], unknown \['c'\]"):
        require({"a": 1, "c": 2}, "a", "b")


def test_a_restored_generator_continues_from_its_state() -> None:
    rng = np.random.default_rng(0)
    state = json.loads(json.dumps(generator_state(rng)))
    expected = rng.random(3).tolist()
    restore_generator(rng, state)
    assert rng.random(3).tolist() == expected

from typing import Any

import numpy as np
import pytest

from rl4sys.policy import MASK, Decision
from rl4sys.wire import ContractViolation, Question, decode_decision, decode_question, encode_decision, encode_question

from .strategies import LANDER, RICH, rich_segment


def question(rows: int = 4) -> Question:
    carry = {"core.hidden": np.ones((rows, 3), np.float32), "core.count": np.arange(rows)}
    return Question("left", 3, 12, rich_segment(rows - 1).observation, carry, rows)


def decision(rows: int = 4) -> Decision:
    segment = rich_segment(rows)
    return Decision(segment.action, segment.extras, question(rows).carry or {})


def test_a_decoded_question_equals_the_encoded_one() -> None:
    sent = question()
    got = decode_question(RICH, encode_question(RICH, sent, "session"), max_rows=4)
    assert (got.agent, got.lane, got.step, got.rows) == (sent.agent, sent.lane, sent.step, sent.rows)
    np.testing.assert_equal(dict(got.observation), dict(sent.observation))
    np.testing.assert_equal(got.carry, sent.carry)


def test_the_first_question_of_an_episode_has_no_carry() -> None:
    first = Question("left", 0, 0, question().observation, None, 4)
    assert decode_question(RICH, encode_question(RICH, first, "session"), max_rows=4).carry is None


def test_a_decoded_decision_has_its_version() -> None:
    version, got = decode_decision(RICH, encode_decision(RICH, decision(), 9), rows=4)
    assert version == 9
    np.testing.assert_equal(got._asdict(), decision()._asdict())


@pytest.mark.parametrize(
    ("place", "data", "words"),
    [
        (0, b"", "image' has 0 bytes"),
        (1, np.full(4, np.nan).tobytes(), "queue' contains NaN"),
        (2, b"\7" * 20, f"{MASK}' has bytes"),
    ],
)
def test_an_observation_that_breaks_the_schema_is_refused(place: int, data: bytes, words: str) -> None:
    message = encode_question(RICH, question(), "session")
    message.observation[place] = data
    with pytest.raises(ContractViolation, match=words):
        decode_question(RICH, message, max_rows=4)


@pytest.mark.parametrize("change", [{"rows": 0}, {"rows": 5}, {"lane": 2**63}, {"agent": ""}])
def test_a_question_out_of_bounds_is_refused(change: dict[str, Any]) -> None:
    message = encode_question(RICH, question(), "session")
    for name, value in change.items():
        setattr(message, name, value)
    with pytest.raises(ContractViolation):
        decode_question(RICH, message, max_rows=4)


def test_a_decision_for_another_number_of_rows_is_refused() -> None:
    with pytest.raises(ContractViolation, match="expected 12"):
        decode_decision(RICH, encode_decision(RICH, decision(), 9), rows=3)


def test_a_missing_observation_is_named_before_it_is_sent() -> None:
    with pytest.raises(ContractViolation, match="observation"):
        encode_question(LANDER, question(), "session")

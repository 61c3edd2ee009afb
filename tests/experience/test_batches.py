import numpy as np

from rl4sys.experience import Sequences, StreamKey, Transitions


def test_the_length_of_transitions_is_their_number_of_rows() -> None:
    ones = np.ones(5, np.float32)
    batch = Transitions({}, ones, np.ones((5, 3)), ones, {}, ones, {}, ones, ones)
    assert len(batch) == 5


def test_the_steps_of_sequences_are_the_rows_with_an_action() -> None:
    acted = np.array([[True, True, False], [True, False, False]])
    batch = Sequences({}, acted, acted, acted, acted, acted, acted, {}, {}, (StreamKey("a"), StreamKey("b")))
    assert batch.steps == 3

from __future__ import annotations

import numpy as np
from gymnasium import spaces

from rl4sys.environments import action_converter


def test_numbers_beyond_an_integer_box_are_clipped_and_do_not_wrap() -> None:
    convert = action_converter(spaces.Box(0, 255, (1,), np.uint8))
    given = np.array([[-3.0], [300.0], [12.4]], np.float32)
    assert [int(action[0]) for action in convert(given)] == [0, 255, 12]

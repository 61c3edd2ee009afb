"""Why there is no decision for some of several episodes, and whether something else can decide for them."""

from __future__ import annotations

from collections.abc import Sequence

from rl4sys.client.bad_input import BAD_INPUT, BadInputChoice
from rl4sys.client.episode import Episode
from rl4sys.client.shared_state import SharedState

Problems = dict[int, Exception]
"""Why there is no decision for a row, by its index."""


def require_deciders(shared: SharedState, episodes: Sequence[Episode], problems: Problems) -> None:
    """Raise the first bad input for which neither a fallback nor an earlier action can stand in."""
    for index, problem in problems.items():
        holds = shared.on_bad_input is BadInputChoice.HOLD and episodes[index].previous_action() is not None
        falls_back = shared.on_bad_input is not BadInputChoice.RAISE and shared.fallback is not None
        if isinstance(problem, BAD_INPUT) and not holds and not falls_back:
            shared.status.bad_input(problem)
            raise problem

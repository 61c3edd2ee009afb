"""The last hour of a server in memory of fixed size."""

from __future__ import annotations

from typing import Any

from tests.ui.fake_servers import LEARNER, reply

from rl4sys.operations.status_tables import message_values
from rl4sys.ui.fleet_history import MOST_LEARNERS, FleetHistory


def status(*learners: dict[str, Any]) -> dict[str, Any]:
    return message_values(reply(learners=[LEARNER | each for each in learners]))


def test_curves_are_in_the_order_of_time_and_the_oldest_are_forgotten() -> None:
    history = FleetHistory(samples=4)
    for second in range(0, 12, 2):
        history.add(100.0 + second, status({"queued_segments": second}), connected=3)
    curves = history.curves()
    assert curves["times"] == [104.0, 106.0, 108.0, 110.0]
    assert curves["series"]["shared~cache/queued"] == [4, 6, 8, 10]
    assert curves["series"]["clients"] == [3, 3, 3, 3]
    assert history.since == 104.0
    assert history.newest()["series"]["shared~cache/queued"] == [10]


def test_steps_per_second_are_taken_over_the_last_samples() -> None:
    history = FleetHistory()
    assert history.steps_per_second("shared~cache") is None
    for second, steps in ((0, 0), (2, 100), (4, 400)):
        history.add(float(second), status({"learned_steps": steps}), 1)
    assert history.steps_per_second("shared~cache") == 100.0
    assert history.steps_per_second("unknown") is None


def test_a_learner_that_starts_over_has_no_negative_rate() -> None:
    history = FleetHistory()
    history.add(0.0, status({"learned_steps": 500}), 1)
    history.add(2.0, status({"learned_steps": 10}), 1)
    assert history.steps_per_second("shared~cache") == 0.0


def test_a_value_that_is_missing_is_a_gap() -> None:
    history = FleetHistory()
    history.add(0.0, status({}), 1)
    history.add(2.0, message_values(reply(learners=[])), 1)
    assert history.curves()["series"]["shared~cache/return"] == [12.5, None]


def test_only_so_many_learners_have_curves_and_samples_keep_their_distance() -> None:
    history = FleetHistory()
    many = status(*({"learner": f"learner-{n}"} for n in range(MOST_LEARNERS + 3)))
    history.add(0.0, many, 1)
    history.add(0.1, many, 1)
    assert len(history.curves()["learners"]) == MOST_LEARNERS
    assert history.curves()["times"] == [0.0]

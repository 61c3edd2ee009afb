from __future__ import annotations

from rl4sys.server.restarts import Restarts


def test_a_worker_that_fails_at_the_same_record_is_given_up_at_the_third_time() -> None:
    restarts = Restarts()
    restarts.note_progress(7)
    assert restarts.after_failure() == 0.5
    restarts.note_progress(3)
    restarts.note_progress(7)
    assert restarts.after_failure() == 1.0
    assert restarts.after_failure() is None
    assert restarts.count == 2


def test_a_worker_that_gets_further_each_time_is_never_given_up() -> None:
    restarts = Restarts()
    for position in range(1, 50):
        restarts.note_progress(position)
        assert restarts.after_failure() == 0.5


def test_a_worker_that_never_gets_ready_is_given_up() -> None:
    restarts = Restarts()
    assert [restarts.after_failure() for _ in range(3)] == [0.5, 1.0, None]

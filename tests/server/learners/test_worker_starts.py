from __future__ import annotations

from rl4sys.server.learners.worker_starts import RestartBackoff, StartQueue


def test_learners_start_in_order_and_no_more_at_once_than_there_are_slots() -> None:
    queue, started = StartQueue(2), list[int]()
    for number in range(5):
        queue.enter(lambda number=number: started.append(number) is None)
    assert started == [0, 1]
    queue.done()
    assert started == [0, 1, 2]
    for _ in range(4):
        queue.done()
    assert started == [0, 1, 2, 3, 4]
    queue.enter(lambda: started.append(5) is None)
    assert started[-1] == 5


def test_thousands_of_unused_slots_are_passed_on_without_recursion() -> None:
    queue, started = StartQueue(1), list[str]()
    queue.enter(lambda: True)
    for _ in range(5_000):
        queue.enter(lambda: False)
    queue.enter(lambda: started.append("last") is None)
    queue.done()
    assert started == ["last"]


def test_a_worker_that_fails_three_times_at_the_same_record_is_given_up() -> None:
    restarts = RestartBackoff()
    restarts.note_progress(7)
    assert restarts.after_failure() == 0.5
    restarts.note_progress(3)
    restarts.note_progress(7)
    assert restarts.after_failure() == 1.0
    assert restarts.after_failure() is None
    assert restarts.count == 2


def test_a_worker_that_gets_further_each_time_is_never_given_up() -> None:
    restarts = RestartBackoff()
    for position in range(1, 50):
        restarts.note_progress(position)
        assert restarts.after_failure() == 0.5


def test_a_worker_that_never_becomes_ready_is_given_up() -> None:
    restarts = RestartBackoff()
    assert [restarts.after_failure() for _ in range(3)] == [0.5, 1.0, None]

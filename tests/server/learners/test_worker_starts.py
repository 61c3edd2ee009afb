from __future__ import annotations

from rl4sys.server.learners.worker_starts import RestartBackoff, StartQueue
from rl4sys.server.workers.events import Failed


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


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def backoff(clock: Clock | None = None) -> RestartBackoff:
    return RestartBackoff(clock or Clock(), first_seconds=0.5, jitter=lambda: 0.5)


def own(position: int) -> Failed:
    return Failed("ValueError: no", position, is_own=True)


KILLED = Failed("The worker's process ended with code -9.")


def test_a_worker_whose_own_code_fails_three_times_at_the_same_record_is_given_up() -> None:
    restarts = backoff()
    assert [restarts.after_failure(own(7)) for _ in range(3)] == [0.5, 1.0, None]
    assert restarts.count == 2


def test_a_worker_that_gets_further_each_time_is_never_given_up() -> None:
    restarts = backoff()
    assert {restarts.after_failure(own(position)) for position in range(1, 50)} == {0.5}


def test_a_worker_that_is_killed_is_restarted_without_end_after_bounded_delays() -> None:
    restarts = backoff()
    delays = [restarts.after_failure(KILLED) for _ in range(1_100)]
    assert delays[:4] == [0.5, 1.0, 2.0, 4.0]
    assert delays[-1] == max(delay or 0.0 for delay in delays) == 30.0


def test_kills_between_two_failures_at_the_same_record_change_nothing() -> None:
    restarts = backoff()
    for failure in (own(7), KILLED, own(7), KILLED):
        assert restarts.after_failure(failure) is not None
    assert restarts.after_failure(own(7)) is None


def test_failures_are_forgotten_with_time_and_by_an_operator() -> None:
    clock = Clock()
    restarts = backoff(clock)
    for _ in range(10):
        clock.now += 400.0
        assert restarts.after_failure(own(7)) == 0.5
    restarts.after_failure(own(7))
    restarts.reset()
    assert restarts.after_failure(own(7)) == 0.5


def test_restarts_of_many_learners_are_spread() -> None:
    early, late = (RestartBackoff(Clock(), 1.0, jitter=lambda j=j: j).after_failure(KILLED) for j in (0.0, 1.0))
    assert (early, late) == (0.75, 1.25)

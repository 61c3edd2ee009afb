"""Settings of gunicorn: each worker connects after the fork, and sends what is left before it ends."""

from examples.prefork.app import close_worker, connect_worker

bind = "127.0.0.1:8000"
workers = 4
_numbers: dict[int, int] = {}
"""The number of each worker by its age; the parent remembers it, so that a worker that is replaced gives it back."""


def pre_fork(server, worker):  # type: ignore[no-untyped-def]
    """In the parent: the lowest number that is free."""
    _numbers[worker.age] = min(set(range(len(_numbers) + 1)) - set(_numbers.values()))


def post_fork(server, worker):  # type: ignore[no-untyped-def]
    """In the worker, after the fork."""
    connect_worker(_numbers[worker.age])


def worker_exit(server, worker):  # type: ignore[no-untyped-def]
    """In the worker, before it ends."""
    close_worker()


def child_exit(server, worker):  # type: ignore[no-untyped-def]
    """In the parent, after a worker has ended."""
    _numbers.pop(worker.age, None)

"""Forks two workers of the pre-fork example, with the hooks of its gunicorn settings, and lets each answer requests."""

from __future__ import annotations

import os
import runpy
import sys
from types import SimpleNamespace
from typing import Any

from examples.prefork import app

REQUESTS = 30


def work(hooks: dict[str, Any], worker: SimpleNamespace) -> int:
    hooks["post_fork"](None, worker)
    said: list[str] = []
    for _ in range(REQUESTS):
        (answer,) = app.application({}, lambda status, headers: said.append(status))
        assert answer.startswith(b"from backend")
    hooks["worker_exit"](None, worker)
    return 0 if said == ["200 OK"] * REQUESTS else 1


def main() -> int:
    hooks = runpy.run_path("examples/prefork/gunicorn.conf.py")
    children = []
    for age in (1, 2):
        worker = SimpleNamespace(age=age)
        hooks["pre_fork"](None, worker)
        child = os.fork()
        if child == 0:
            # Whatever happens, a worker never returns into the parent's code.
            code = 1
            try:
                code = work(hooks, worker)
            finally:
                os._exit(code)
        children.append(child)
    return sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)


if __name__ == "__main__":
    sys.exit(main())

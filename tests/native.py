"""Marks tests of the native runtime, which is built by `make setup` where there is a compiler."""

import pytest

from rl4sys.policy import native_problem

needs_native = pytest.mark.skipif(native_problem() is not None, reason=native_problem() or "")

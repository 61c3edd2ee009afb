"""What the program prints of an error that it does not know."""

from __future__ import annotations

import pytest

from rl4sys.cli.main import explain


def test_an_unknown_error_is_explained_with_its_file_and_line() -> None:
    with pytest.raises(ValueError, match="device") as raised:
        raise ValueError("no such device")
    line = raised.value.__traceback__.tb_lineno  # type: ignore[union-attr]  # it was raised
    assert explain(raised.value).startswith(f"ValueError: no such device\n(at {__file__}:{line}; ")


def test_an_error_that_was_never_raised_has_no_place() -> None:
    assert explain(ValueError("no")) == "ValueError: no\n(run again with --debug for the traceback)"

from __future__ import annotations

import pytest
from _pytest.outcomes import Failed, Skipped

from .conftest import missing


@pytest.mark.parametrize(("ci", "outcome"), [("true", Failed), ("", Skipped)])
def test_a_missing_browser_skips_tests_here_and_fails_them_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, outcome: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="chromium is missing"):
        missing("chromium is missing")

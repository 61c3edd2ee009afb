from __future__ import annotations

import pytest
from tests.storms import scaled


@pytest.mark.parametrize(("scale", "trials"), [(None, 20), ("1", 1000), ("0.01", 10), ("0.0001", 1)])
def test_the_variable_scales_the_number_of_trials(
    scale: str | None, trials: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RL4SYS_STORM", raising=False)
    if scale is not None:
        monkeypatch.setenv("RL4SYS_STORM", scale)
    assert scaled(20, 1_000) == trials

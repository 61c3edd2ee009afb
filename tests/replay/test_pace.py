from __future__ import annotations

import pytest

from rl4sys.replay import OnceFresh, Ratio
from rl4sys.replay.pace import UpdateCredit


def updates_due(credit: UpdateCredit) -> int:
    updates = 0
    while credit.spend():
        updates += 1
    return updates


@pytest.mark.parametrize(("ratio", "updates"), [(0.25, 25_000), (0.1, 10_000), (1 / 3, 33_333), (2.5, 250_000)])
def test_fractional_credit_never_drifts(ratio: float, updates: int) -> None:
    credit = UpdateCredit(Ratio(ratio, warmup=0, batch_size=1))
    made = 0
    for total in range(1, 100_001):
        credit.earn(1, total)
        made += updates_due(credit)
    assert made == updates


def test_no_updates_are_due_for_warmup_steps() -> None:
    credit = UpdateCredit(Ratio(1, warmup=10, batch_size=1))
    credit.earn(8, total=8)
    assert updates_due(credit) == 0
    credit.earn(5, total=13)
    assert updates_due(credit) == 3


def test_restored_credit_keeps_its_fraction() -> None:
    credit, resumed = (UpdateCredit(Ratio(0.3, warmup=0, batch_size=1)) for _ in range(2))
    credit.earn(3, total=3)
    resumed.restore(credit.state())
    resumed.earn(1, total=4)
    assert updates_due(resumed) == 1
    assert resumed.state() == "2/10"


def test_credit_is_kept_when_the_pace_changes() -> None:
    credit = UpdateCredit(Ratio(0.5, warmup=0, batch_size=1))
    credit.restore("7/4")
    assert updates_due(credit) == 1


@pytest.mark.parametrize("ratio", [0, -1, 1e-9])
def test_a_ratio_that_would_never_learn_is_refused(ratio: float) -> None:
    with pytest.raises(ValueError, match="updates_per_step"):
        Ratio(ratio, warmup=0, batch_size=1)


def test_a_pace_without_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="steps ≥ 1"):
        OnceFresh(steps=0, max_age=0)

"""Conditions: what they understand, what they refuse, and what they do not know yet."""

from __future__ import annotations

import math

import pytest

from rl4sys.alerts import AlertCondition, BadCondition, MetricHistory

NOW = {"train/loss": 3.0, "rollout/return": 10.0, "broken": math.nan, "step": 100.0}
PAST = {
    "rollout/return": [(10, 5.0), (40, 12.0), (70, 11.0), (100, 10.0)],
    "grown": [(60, 3.0), (80, 8.0), (90, 1.0), (95, 3.0)],
}


def holds(text: str, over: int = 50) -> bool:
    return AlertCondition(text).holds(MetricHistory(NOW, PAST, over))


@pytest.mark.parametrize(
    "text",
    [
        "train/loss > 2",
        "train/loss>2 and rollout/return <= 10",
        "not train/loss < 2",
        "train/loss / rollout/return == 0.3",
        "1 < train/loss < 4",
        "-train/loss + 4 * 2 >= 5",
        "not_finite(broken) or train/loss > 99",
        "unheard/of > 1 or train/loss > 2",
        "abs(-train/loss) == 3",
        "mean(rollout/return) == 10.5",
        "highest(rollout/return) == 11 and lowest(rollout/return) == 10",
        "median(rollout/return) < 11",
        "stalled(rollout/return)",
        "increase(grown) == 7",
        "step >= 100",
        "True",
    ],
)
def test_what_is_true(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize(
    "text",
    [
        "train/loss > 3",
        "broken > 0",
        "unheard/of > 1",
        "not unheard/of > 1",
        "stalled(unheard/of)",
        "train/loss / (step - 100) > 0",
        "stalled(rollout/return) and train/loss > 5",
    ],
)
def test_what_is_not_true_or_not_known(text: str) -> None:
    assert not holds(text)


def test_something_that_improved_within_the_window_is_not_stalled() -> None:
    assert not holds("stalled(rollout/return)", over=80)


def test_nothing_is_stalled_before_there_is_anything_to_compare_with() -> None:
    assert not holds("stalled(rollout/return)", over=1_000)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("train/loss >", "no condition"),
        ("", "no condition"),
        ("__import__('os').system('true')", "is not understood"),
        ("open('x')", "no function open"),
        ("(1).__class__", "is not understood"),
        ("[x for x in (1, 2)]", "is not understood"),
        ("lambda: 1", "is not understood"),
        ("9 ** 9 ** 9", "is not understood"),
        ("'text' == 'text'", "is not understood"),
        ("mean(train/loss + 1)", "looks back on one metric"),
        ("mean(train/loss, 5)", "is not understood"),
        ("x" * 400, "characters"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(BadCondition, match=message):
        AlertCondition(text)

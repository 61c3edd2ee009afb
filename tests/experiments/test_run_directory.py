from __future__ import annotations

import datetime

from rl4sys.experiments.run_directory import directory_name

NOW = datetime.datetime(2026, 1, 1, 12)


def test_a_run_is_named_after_experiment_seed_and_time() -> None:
    assert directory_name("ppo-CartPole-v1", 3, NOW) == "ppo-CartPole-v1-seed3-20260101-120000"


def test_a_long_name_is_cut_to_80_characters_and_stays_distinct() -> None:
    one, other = (directory_name(f"{'long-' * 18}{end}", 0, NOW) for end in "ab")
    assert one != other
    assert len(f"{one}-999") == len(f"{other}-999") == 80
    assert one.endswith("-seed0-20260101-120000")

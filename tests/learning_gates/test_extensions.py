"""Learning gates of extensions: they do as well as what they extend, with fewer steps (`make test-learning`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from .test_published_scores import Gate, final_score, interquartile_mean

GATES = [
    Gate("qr_dqn_CartPole-v1.yaml", 450, (1, 2, 3)),
    Gate("tqc_Pendulum-v1.yaml", -200, (1, 2, 3)),
    Gate("droq_Pendulum-v1.yaml", -200, (1, 2, 3)),
]


SEEDS = (1, 2, 3)
CURIOUS = "ppo_rnd_MountainCar-v0.yaml"
NEVER_THERE = -200.0
"""The return of an episode of MountainCar that never reaches the flag."""


@pytest.mark.learning
@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.config.removesuffix(".yaml"))
def test_an_extension_reaches_its_score(gate: Gate, tmp_path: Path) -> None:
    scores = [final_score(gate.config, seed, tmp_path) for seed in gate.seeds]
    middle = interquartile_mean(scores)
    print(f"\n{gate.config}: IQM {middle:.1f}, gate {gate.score}, seeds {[round(score, 1) for score in scores]}")
    assert middle >= gate.score


@pytest.mark.learning
def test_rare_rewards_are_found_sooner_with_a_bonus_for_novelty(tmp_path: Path) -> None:
    curious = [final_score(CURIOUS, seed, tmp_path) for seed in SEEDS]
    plain = [final_score(CURIOUS, seed, tmp_path, {"algorithm.bonus": 0.0}) for seed in SEEDS]
    print(f"\n{CURIOUS}: with the bonus {curious}, without {plain}; the flag never reached is {NEVER_THERE}")
    assert min(curious) >= -160.0
    assert max(plain) < min(curious)

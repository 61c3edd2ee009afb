"""Runs that start from decisions of an incumbent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rl4sys.config import ConfigError
from rl4sys.experiments import Run

from .runs import DQN, OFF_POLICY, PPO, small

IMITATE = {
    "algorithm__imitate": {"decisions": 500, "epochs": 40, "minibatch_size": 64, "lr": 3e-3},
    "environment__incumbent": "incumbents:balance",
}
LARGER = {"buffer__size": 256, "network": {"actor": {"hidden_dims": [32]}, "critic": {"hidden_dims": [32]}}}


def test_a_policy_balances_as_the_rule_that_it_imitates(tmp_path: Path) -> None:
    with Run.create(small(PPO, tmp_path, **IMITATE, **LARGER)) as run:
        while run.learner.updates < 1:
            run.step()
        evaluation = run.evaluate(4)
    assert run.steps == 512
    assert evaluation.mean > 150


def test_a_policy_chooses_among_candidates_as_the_rule_that_it_imitates(tmp_path: Path) -> None:
    candidates = {"network": {each: {"type": "candidates", "hidden_dims": [32]} for each in ("actor", "critic")}}
    task = {"environment__name": "rl4sys/CandidateChoice-v0", "environment__incumbent": "incumbents:best_candidate"}
    with Run.create(small(PPO, tmp_path, **(IMITATE | task), **candidates, buffer__size=256)) as run:
        while run.learner.updates < 1:
            run.step()
        evaluation = run.evaluate(8)
    # Of 16 decisions; a random choice finds the best of one to eight candidates in a third of them.
    assert evaluation.mean > 13


def test_without_imitation_the_digest_of_an_experiment_is_that_of_earlier_versions(tmp_path: Path) -> None:
    digest = small(PPO, tmp_path).digest()
    assert digest == "66acb871e3b90dd174c1b337fc7b3185a2ded5f63d880bd45d737865ea9cd72b"
    assert small(PPO, tmp_path, **IMITATE).digest() != digest


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"algorithm__imitate": {}}, r"nothing to imitate in a local run\. Set environment\.incumbent"),
        ({"environment__incumbent": "incumbents:balance"}, "of use only for imitation: set algorithm.imitate"),
        (IMITATE | {"environment__incumbent": "incumbents"}, "expected module:function"),
        (IMITATE | {"environment__incumbent": "incumbents:balanced"}, "there is no incumbents:balanced"),
        (IMITATE | {"environment__incumbent": "no_module:f"}, "there is no no_module:f"),
        (IMITATE | {"environment__incumbent": "incumbents:NOT_A_FUNCTION"}, "expected a function"),
        (IMITATE | {"training__pipelined": True}, "set training.pipelined=false"),
    ],
)
def test_imitation_that_cannot_work_is_refused_before_the_run(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem), Run.create(small(PPO, tmp_path, **changes)) as run:
        run.step()


def test_an_action_outside_the_space_is_refused(tmp_path: Path) -> None:
    changes = IMITATE | {"environment__incumbent": "incumbents:nonsense"}
    with (
        Run.create(small(PPO, tmp_path, **changes)) as run,
        pytest.raises(ConfigError, match="incumbents:nonsense returned 2; expected an action of the environment"),
    ):
        run.step()


def test_a_choice_that_is_no_candidate_is_refused(tmp_path: Path) -> None:
    candidates = {"network": {each: {"type": "candidates", "hidden_dims": [8]} for each in ("actor", "critic")}}
    task = {"environment__name": "rl4sys/CandidateChoice-v0", "environment__incumbent": "incumbents:nonsense"}
    with (
        Run.create(small(PPO, tmp_path, **(IMITATE | task), **candidates)) as run,
        pytest.raises(ConfigError, match=r"incumbents:nonsense returned 2 of [12] candidates"),
    ):
        run.train()


def test_algorithms_that_cannot_imitate_say_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="imitate: this algorithm cannot imitate; use ppo, dqn or sac"):
        small(OFF_POLICY, tmp_path, algorithm__name="td3", environment__name="Pendulum-v1", algorithm__imitate={})
    memory = {"network": {"actor": {"type": "lstm", "units": 4}}, "buffer": {"type": "sequences", "size": 150}}
    with pytest.raises(ConfigError, match="dqn cannot imitate with a network that has memory"):
        Run.create(small(DQN, tmp_path, **IMITATE, **memory))

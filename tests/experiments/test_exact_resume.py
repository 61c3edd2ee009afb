"""2N steps = N, forget everything, resume, N: to the bit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from image_environment import COMET, NETWORK, PIXELS
from rl4sys.experiments import Run
from timed_environment import TIMED

from .runs import DQN, OFF_POLICY, PETS, PPO, WORLD_MODEL, small

_SAC = {"algorithm__name": "sac"}
_SQL = {"algorithm__name": "sql", "algorithm__value_samples": 4}
_DREAMER = {"algorithm__name": "dreamer", "algorithm__horizon": 3}
_PLANET = {"algorithm__name": "planet", "algorithm__horizon": 3, "algorithm__candidates": 12, "algorithm__elites": 3}
_PENDULUM = {"environment__name": "Pendulum-v1"}
_RECALL = {"environment__name": "rl4sys/Recall-v0"}
_MEMORY = {
    "network": {"actor": {"type": "lstm", "units": 4, "hidden_dims": [4]}},
    "algorithm__sequence_length": 4,
    "algorithm__burn_in": 2,
    "buffer": {"type": "sequences", "size": 150},
}
_ACTIONS = {"network": {"actor": {"type": "lstm", "units": 4, "hidden_dims": [4], "previous_action": True}}}
_PICTURES = {
    "environment__name": COMET,
    "environment__pixels": PIXELS,
    "network": {"actor": NETWORK, "critic": NETWORK},
}
# Four convolutions halve images, and need sizes that are multiples of 16.
_SMALL_PICTURES = {
    "environment__name": COMET,
    "environment__kwargs": {"scale": 4},
    "environment__pixels": {"size": 16, "keep_state": True},
}
_BALANCE = {"algorithm__imitate": {"decisions": 130, "epochs": 3}, "environment__incumbent": "incumbents:balance"}
_DAMP = _BALANCE | {"environment__incumbent": "incumbents:damp"}
_TIMED = {"environment__name": TIMED, "algorithm__horizon": "30s", "algorithm__center_rewards": True}
_FALLING = {"type": "cosine", "end": 0.1}
_SLOW = ("meanwhile", "pictures")

CASES: dict[str, tuple[Mapping[str, Any], dict[str, Any]]] = {
    "ppo": (PPO, {"environment__normalize_obs": True, "environment__normalize_reward": True}),
    "ppo with schedules": (
        PPO,
        {"algorithm__schedules": {"lr": "linear", "clip_ratio": _FALLING, "entropy_coef": "step"}},
    ),
    "ppo with a shared trunk": (PPO, {"algorithm__shared_trunk": True}),
    "ppo with a shared trunk and memory": (
        PPO,
        _RECALL | {"algorithm__shared_trunk": True, "network__actor__type": "gru"},
    ),
    "ppo_rnd": (PPO, {"algorithm__name": "ppo_rnd", "environment__normalize_obs": True}),
    "ppo with an own module": (
        {**PPO, "network": {"actor": {"type": "module", "module": "own_networks:Residual"}}},
        {},
    ),
    "ppo with muon": (PPO, {"algorithm__optimizer": "muon"}),
    "dqn with rmsprop": (DQN, {"algorithm__optimizer": {"name": "rmsprop", "momentum": 0.5}}),
    "sac with adamw": (OFF_POLICY, _SAC | _PENDULUM | {"algorithm__optimizer": "adamw"}),
    "dreamer with sgd": (
        WORLD_MODEL,
        _DREAMER | _PENDULUM | {"algorithm__optimizer": {"name": "sgd", "momentum": 0.9}},
    ),
    "dqn with schedules": (DQN, {"algorithm__schedules": {"lr": "step", "epsilon": _FALLING}}),
    "sac with schedules": (OFF_POLICY, _SAC | _PENDULUM | {"algorithm__schedules": {"target_entropy": _FALLING}}),
    "td3 with schedules": (
        OFF_POLICY,
        _PENDULUM | {"algorithm__name": "td3", "algorithm__schedules": {"lr": "cosine", "exploration_std": "linear"}},
    ),
    "ppo imitating": (PPO, _BALANCE | {"environment__normalize_obs": True, "environment__normalize_reward": True}),
    "ppo with memory imitating": (PPO, _BALANCE | {"network__actor__type": "lstm"}),
    "dqn imitating": (DQN, _BALANCE),
    "sac imitating choices": (OFF_POLICY, _SAC | _BALANCE | {"environment__name": "CartPole-v1"}),
    "sac imitating": (OFF_POLICY, _SAC | _DAMP | _PENDULUM),
    "ppo by time": (PPO, _TIMED | {"environment__normalize_reward": True}),
    "ppo with memory by time": (PPO, _TIMED | {"network__actor__type": "lstm"}),
    "dqn by time": (DQN, _TIMED),
    "sac by time": (OFF_POLICY, _SAC | _TIMED),
    "dqn with memory by time": (DQN, _TIMED | _MEMORY | {"algorithm__n_step": 2}),
    "ppo on a box": (PPO, {"environment__name": "Pendulum-v1"}),
    "ppo on a simulated world": (PPO, {"environment__name": "LunarLander-v3"}),
    "ppo with memory": (PPO, _RECALL | {"network__actor__type": "lstm", "environment__normalize_obs": True}),
    "ppo with a transformer": (PPO, _RECALL | {"network": {"actor": {"type": "transformer", "units": 8, "window": 6}}}),
    "ppo with memory of its critic only": (PPO, _RECALL | {"network__critic__type": "gru"}),
    "ppo collecting meanwhile": (PPO, {"training__pipelined": True}),
    "dqn uniform": (DQN, {"buffer": {"type": "uniform", "size": 1_000}}),
    "dqn prioritized": (DQN, {"algorithm__n_step": 3, "algorithm__dueling": True}),
    "sac": (OFF_POLICY, _SAC | _PENDULUM | {"environment__normalize_obs": True}),
    "qr_dqn": (DQN, {"algorithm__name": "qr_dqn", "algorithm__quantiles": 5}),
    "droq": (OFF_POLICY, _PENDULUM | {"algorithm__name": "droq", "algorithm__policy_delay": 2}),
    "tqc": (OFF_POLICY, _PENDULUM | {"algorithm__name": "tqc", "algorithm__quantiles": 5}),
    "sac ensemble": (OFF_POLICY, _SAC | _PENDULUM | {"algorithm__ensemble": 4, "algorithm__target_subset": 2}),
    "sac on choices": (OFF_POLICY, _SAC | {"environment__name": "CartPole-v1", "algorithm__policy_delay": 3}),
    "ppo with memory of actions": (PPO, _RECALL | _ACTIONS),
    "sac with memory of actions": (OFF_POLICY, _SAC | _PENDULUM | _MEMORY | _ACTIONS),
    "dqn with memory": (DQN, _RECALL | _MEMORY | {"algorithm__n_step": 2}),
    "sac with memory": (OFF_POLICY, _SAC | _PENDULUM | _MEMORY | {"environment__normalize_obs": True}),
    "sac on choices with memory": (OFF_POLICY, _SAC | _RECALL | _MEMORY),
    "td3": (OFF_POLICY, _PENDULUM | {"algorithm__name": "td3", "buffer__type": "prioritized"}),
    "ddpg": (OFF_POLICY, _PENDULUM | {"algorithm__name": "ddpg", "algorithm__exploration": "ornstein_uhlenbeck"}),
    "sql": (OFF_POLICY, _SQL | _PENDULUM | {"environment__normalize_obs": True}),
    "sql among goals": (OFF_POLICY, _SQL | {"environment__name": "rl4sys/MultiGoal-v0", "buffer__type": "prioritized"}),
    "pets": (PETS, _PENDULUM),
    "pets collecting meanwhile": (PETS, _PENDULUM | {"training__pipelined": True}),
    "dreamer": (WORLD_MODEL, _DREAMER | _PENDULUM),
    "dreamer on choices": (WORLD_MODEL, _DREAMER | {"environment__name": "CartPole-v1"}),
    "dreamer collecting meanwhile": (WORLD_MODEL, _DREAMER | _PENDULUM | {"training__pipelined": True}),
    "dreamer with gaussian latents": (
        WORLD_MODEL,
        _DREAMER | _PENDULUM | {"algorithm__dynamics": {"type": "rssm", "latents": "gaussian", "groups": 4}},
    ),
    "dreamer with pictures": (WORLD_MODEL, _DREAMER | _SMALL_PICTURES),
    "planet": (WORLD_MODEL, _PLANET | _PENDULUM),
    "ppo with pictures": (PPO, _PICTURES),
    "sac with pictures": (OFF_POLICY, _SAC | _PICTURES | {"environment__kwargs": {"continuous": True}}),
    "sac collecting meanwhile": (OFF_POLICY, _SAC | _PENDULUM | {"training__pipelined": True}),
}


@pytest.mark.parametrize(
    "case", [pytest.param(name, marks=[pytest.mark.slow] if name.endswith(_SLOW) else []) for name in CASES]
)
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path, case: str) -> None:
    kind, changes = CASES[case]
    config = small(kind, tmp_path, **changes)
    expected = Run.create(config).train().fingerprint
    with Run.create(config) as run:
        while run.steps < 100:
            run.step()
        run.save()
        # What comes after the checkpoint is forgotten.
        run.step()
    resumed = Run.resume(run.directory)
    assert 100 <= resumed.steps < 140
    actual = resumed.train().fingerprint
    # The interrupted run logged nothing while it was stepped by hand.
    assert {**actual, "metrics": ""} == {**expected, "metrics": ""}
    assert resumed.inexact == ()


def test_the_same_run_object_can_go_back(tmp_path: Path) -> None:
    with Run.create(small(DQN, tmp_path)) as run:
        for _ in range(20):
            run.step()
        run.save()
        before = run.fingerprint()
        run.step()
        assert run.fingerprint() != before
        run.restore()
        assert run.fingerprint() == before


@pytest.mark.parametrize("at", [32, 128, 224])
def test_metrics_are_cut_back_to_the_checkpoint(tmp_path: Path, at: int) -> None:
    config = small(PPO, tmp_path)
    whole = Run.create(config)
    whole.train()
    run = Run.create(config)
    run.train(stop=lambda: run.steps >= at)
    with run.directory.metrics.open("a") as file:
        file.write('{"step": 9999, "metrics": {}, "timing": {}}\n{"step": 99')
    assert Run.resume(run.directory).train().fingerprint["metrics"] == whole.result.fingerprint["metrics"]

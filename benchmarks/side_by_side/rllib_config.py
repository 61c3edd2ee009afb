"""The settings of RLlib's PPO, 64×64, for all ways to run it."""

from __future__ import annotations

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

ROLLOUT = 2048


def ppo(seed: int) -> PPOConfig:
    """PPO in one process, without an environment yet."""
    return (
        PPOConfig()
        .training(train_batch_size_per_learner=ROLLOUT, minibatch_size=64, num_epochs=10, lr=3e-4, lambda_=0.95)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh"))
        .debugging(seed=seed)
    )

"""RLlib as a server for an external system: PPO, 64×64. Trains until it is ended."""

from __future__ import annotations

import sys

from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.env.external.env_runner_server_for_external_inference import EnvRunnerServerForExternalInference
from systems import WORKS

if __name__ == "__main__":
    work, port, seed = WORKS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    config = (
        PPOConfig()
        .environment(observation_space=work.observation, action_space=work.action, env_config={"port": port})
        .env_runners(num_env_runners=0, env_runner_cls=EnvRunnerServerForExternalInference)
        .training(train_batch_size_per_learner=2048, minibatch_size=64, num_epochs=10, lr=3e-4, lambda_=0.95)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh"))
        .debugging(seed=seed)
    )
    algorithm = config.build_algo()
    while True:
        algorithm.train()

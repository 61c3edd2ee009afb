"""RLlib as a server for an external system: PPO, 64×64. Trains until it is ended."""

from __future__ import annotations

import sys

from ray.rllib.env.external.env_runner_server_for_external_inference import EnvRunnerServerForExternalInference
from rllib_config import ppo
from systems import WORKS

if __name__ == "__main__":
    work, port, seed = WORKS[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
    config = (
        ppo(seed)
        .environment(observation_space=work.observation, action_space=work.action, env_config={"port": port})
        .env_runners(num_env_runners=0, env_runner_cls=EnvRunnerServerForExternalInference)
    )
    algorithm = config.build_algo()
    while True:
        algorithm.train()

"""Evaluates a policy from the cache of a client, without a server: always the most likely action."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import gymnasium
import numpy as np

from rl4sys.client.policy_cache import PolicyCache
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.policy import NumpyPolicy

SEED = 1_000
"""The seed of the first episode; training starts from other seeds."""


def fly_greedily(path: Path, episodes: int) -> list[float]:
    """The returns of episodes with the policy in this file."""
    policy = greedy_policy(path)
    environment = gymnasium.make("LunarLander-v3", disable_env_checker=True)
    return [_fly(policy, environment, SEED + number) for number in range(episodes)]


def greedy_policy(path: Path) -> NumpyPolicy:
    """The policy in this file, without exploration."""
    snapshot = PolicyCache(path.parent, path.stem, time.monotonic, PolicyInterface.of).load()
    if snapshot is None or snapshot.interface.policies.exploit is None:
        raise SystemExit(f"{path} holds no policy. Run the demo once: make demo")
    return NumpyPolicy(snapshot.interface.policies.exploit, snapshot.weights)


def _fly(policy: NumpyPolicy, environment: gymnasium.Env[np.ndarray, int], seed: int) -> float:
    observation, _ = environment.reset(seed=seed)
    no_noise = np.zeros((1, policy.noise_size), np.float32)
    total, over = 0.0, False
    while not over:
        action = policy.act({"observation": observation[None]}, no_noise).action
        observation, reward, terminated, truncated, _ = environment.step(int(action[0]))
        total += float(reward)
        over = terminated or truncated
    return total


def main() -> None:
    """Evaluate the policy of an earlier demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("policy", type=Path, help="a file such as runs/demo-…/policy/demo-lander.policy")
    parser.add_argument("--episodes", type=int, default=100)
    given = parser.parse_args()
    returns = np.array(fly_greedily(given.policy, given.episodes))
    print(f"return {returns.mean():.1f} ± {returns.std():.1f}, landed {(returns >= 200).sum()} of {len(returns)}")


if __name__ == "__main__":
    main()

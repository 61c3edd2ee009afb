"""Lunar Lander as a client of a training server, in the original call style. It needs no torch."""

from __future__ import annotations

import argparse
from collections import deque
from pathlib import Path

import gymnasium

from rl4sys import RL4SysAgent

HERE = Path(__file__).parent


def main() -> None:
    """Fly, and print how it goes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="?", type=Path, default=HERE / "ppo.json")
    parser.add_argument("--episodes", type=int, default=1_500)
    arguments = parser.parse_args()
    environment = gymnasium.make("LunarLander-v3")
    recent: deque[float] = deque(maxlen=50)
    with RL4SysAgent(conf_path=str(arguments.config)) as agent:
        for episode in range(1, arguments.episodes + 1):
            recent.append(fly(agent, environment))
            if episode % 25 == 0:
                mean = sum(recent) / len(recent)
                print(
                    f"episode {episode:5}  mean return {mean:7.1f}  policy version {agent.agent.health().version}",
                    flush=True,
                )


def fly(agent: RL4SysAgent, environment: gymnasium.Env) -> float:
    """One episode; its return."""
    trajectory, total, done = None, 0.0, False
    observation, _ = environment.reset()
    while not done:
        trajectory, action = agent.request_for_action(trajectory, observation)
        observation, reward, terminated, truncated, _ = environment.step(action.act)
        agent.add_to_trajectory(trajectory, action)
        action.update_reward(reward)
        total += float(reward)
        done = terminated or truncated
    agent.mark_end_of_trajectory(trajectory, action, final_observation=observation, truncated=truncated)
    return total


if __name__ == "__main__":
    main()

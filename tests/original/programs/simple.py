"""A trajectory for each episode; decisions are rewarded before they are added. Sizes come from the agent."""

import random
import sys

import torch
from corridor import Corridor

from rl4sys.client.agent import RL4SysAgent


def build_observation(obs):
    return torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0)


def main():
    agent = RL4SysAgent(conf_path="./conf.json", debug=False)
    input_dim = agent.algorithm_parameters.get("input_size", 8)
    act_dim = agent.algorithm_parameters.get("act_dim", 4)
    env, added = Corridor(input_dim, length=7), 0
    for _ in range(6):
        obs, _ = env.reset()
        traj, moves = None, 0
        while moves < 50:
            try:
                traj, rl_action = agent.request_for_action(traj, build_observation(obs))
            except Exception as error:
                print(f"request_for_action failed: {error}; choosing {random.randint(0, act_dim - 1)}")
                sys.exit(1)
            value = int(rl_action.act.item()) if isinstance(rl_action.act, torch.Tensor) else int(rl_action.act)
            obs, reward, done, _, _ = env.step(value)
            rl_action.update_reward(reward)
            agent.add_to_trajectory(traj, rl_action)
            added += 1
            moves += 1
            if done:
                agent.mark_end_of_trajectory(traj, rl_action)
                break
    print(agent.client_id, agent.algorithm_name, agent.server_address, agent.local_version)
    print("added", added)


if __name__ == "__main__":
    main()

"""Continuous actions, reshaped and clipped; the last action is flagged before the end is marked."""

import numpy as np
import torch
from corridor import Corridor

from rl4sys.client.agent import RL4SysAgent

if __name__ == "__main__":
    agent = RL4SysAgent(conf_path="./conf.json")
    env, traj, added, act_dim = Corridor(), None, 0, 2
    for iteration in range(5):
        obs, _ = env.reset(seed=iteration)
        done, moves = False, 0
        while not done and moves < 400:
            traj, rl_action = agent.request_for_action(traj, torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0))
            agent.add_to_trajectory(traj, rl_action)
            added += 1
            action = rl_action.act
            if isinstance(action, torch.Tensor):
                action = action.detach().cpu().numpy()
            action = np.clip(np.asarray(action, dtype=np.float32).reshape(act_dim), -1.0, 1.0)
            obs, reward, terminated, truncated, _ = env.step(action)
            done = bool(terminated or truncated)
            rl_action.update_reward(float(reward))
            moves += 1
            if done:
                rl_action.done = True
                agent.mark_end_of_trajectory(traj, rl_action)
                break
    print("added", added)

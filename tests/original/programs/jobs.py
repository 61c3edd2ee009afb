"""A mask with every request; the end is marked after the loop."""

import numpy as np
import torch
from corridor import Corridor
from rl4sys.utils.util import StructuredLogger

from rl4sys.client.agent import RL4SysAgent


def build_mask(obs):
    mask = (obs[:4] > 0).astype(np.float32)
    return mask if mask.any() else np.ones(4, np.float32)


if __name__ == "__main__":
    logger = StructuredLogger("Jobs", debug=True)
    agent = RL4SysAgent(conf_path="./conf.json")
    env, traj, added = Corridor(), None, 0
    for _ in range(5):
        obs, _ = env.reset()
        done = False
        while not done:
            action_mask = build_mask(obs)
            action_mask_tensor = torch.as_tensor(action_mask, dtype=torch.float32)
            obs_tensor = torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0)
            traj, rl_action = agent.request_for_action(traj, obs_tensor, mask=action_mask_tensor)
            agent.add_to_trajectory(traj, rl_action)
            added += 1
            if not action_mask[int(rl_action.act)]:
                raise SystemExit(f"chose {rl_action.act} of {action_mask}")
            obs, reward, done, _, _ = env.step(int(rl_action.act))
            rl_action.update_reward(reward)
            logger.debug("Step", action_mask=action_mask.tolist(), valid=np.sum(action_mask))
        agent.mark_end_of_trajectory(traj, rl_action)
    print("added", added)

"""Tunes without episodes: a trajectory ends every 20 steps, and the ended one is passed on."""

import torch
from corridor import Corridor

from rl4sys.client.agent import RL4SysAgent

if __name__ == "__main__":
    rl_agent = RL4SysAgent(conf_path="./conf.json")
    rl_traj = None
    env, added = Corridor(length=10_000), 0
    obs, _ = env.reset()
    for step in range(60):
        obs_tensor = torch.tensor([float(value) for value in obs], dtype=torch.float32).unsqueeze(0)
        rl_traj, rl_action_obj = rl_agent.request_for_action(rl_traj, obs_tensor)
        rl_agent.add_to_trajectory(rl_traj, rl_action_obj)
        added += 1
        print("buffer", len(rl_agent._trajectory_buffer))
        action_id = int(rl_action_obj.act.item()) if hasattr(rl_action_obj.act, "item") else int(rl_action_obj.act)
        obs, reward, _, _, _ = env.step(action_id)
        rl_agent.update_action_reward(rl_action_obj, reward)
        if (step + 1) % 20 == 0:
            rl_action_obj.done = True
            rl_agent.mark_end_of_trajectory(rl_traj, rl_action_obj)
    rl_agent.close()
    print("added", added)

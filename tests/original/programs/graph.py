"""Flat observations. Rewards come late: decisions wait in a queue, are added when their reward is known, and the
trajectory ends with each group of them, while newer decisions are still waiting.
"""

from collections import deque, namedtuple

import torch
from corridor import Corridor

from rl4sys.client.agent import RL4SysAgent

Waiting = namedtuple("Waiting", ["moment", "rl4sys_action"])

if __name__ == "__main__":
    agent = RL4SysAgent(conf_path="./conf.json")
    traj, queue, added = None, deque(), 0
    env = Corridor(length=10_000)
    obs, _ = env.reset()
    for moment in range(60):
        if queue and moment - queue[0].moment > 10:
            while queue and moment - queue[0].moment > 6:
                queue[0].rl4sys_action.update_reward(-float(moment))
                step = queue.popleft()
                agent.add_to_trajectory(traj, step.rl4sys_action)
                added += 1
            agent.mark_end_of_trajectory(traj, step.rl4sys_action)
        traj, action = agent.request_for_action(traj, torch.tensor(obs, dtype=torch.float32))
        share = action.act / 100.0
        queue.append(Waiting(moment, action))
        obs, _, _, _, _ = env.step(share)
    print("added", added)

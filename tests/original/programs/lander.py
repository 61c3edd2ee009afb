"""A class around an environment; decisions are added at once and rewarded after the step."""

import numpy as np
import torch
from corridor import Corridor
from rl4sys.utils.util import StructuredLogger

from rl4sys.client.agent import RL4SysAgent


class LanderSim:
    def __init__(self):
        self.logger = StructuredLogger("LanderSim", debug=False)
        self.env = Corridor()
        self.rlagent = RL4SysAgent(conf_path="./conf.json")
        self.rl4sys_traj = None
        self.rl4sys_action = None
        self.added = 0

    def run_application(self, num_iterations, max_moves):
        for iteration in range(num_iterations):
            obs, _ = self.env.reset(seed=iteration)
            done = False
            moves = 0
            obs_tensor = self.build_observation(obs)
            while not done or moves < max_moves:
                self.rl4sys_traj, self.rl4sys_action = self.rlagent.request_for_action(self.rl4sys_traj, obs_tensor)
                self.rlagent.add_to_trajectory(self.rl4sys_traj, self.rl4sys_action)
                self.added += 1
                action = self.rl4sys_action.act
                if isinstance(action, torch.Tensor):
                    action = action.item()
                elif isinstance(action, np.ndarray):
                    action = action[0]
                action = int(action)
                next_obs, reward, terminated, truncated, _ = self.env.step(action)
                done = terminated or truncated
                self.rl4sys_action.update_reward(reward)
                moves += 1
                obs_tensor = self.build_observation(next_obs)
                if moves >= max_moves or done:
                    self.logger.info("Iteration completed", iteration=iteration, moves=np.int64(moves), done=done)
                    self.rlagent.mark_end_of_trajectory(self.rl4sys_traj, self.rl4sys_action)
                    break

    def build_observation(self, obs):
        return torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0)


if __name__ == "__main__":
    sim = LanderSim()
    sim.run_application(num_iterations=6, max_moves=10)
    print("added", sim.added)

"""Asks for actions with masks and measures itself; nothing is recorded."""

import time

import numpy as np
import torch
from corridor import Corridor
from rl4sys.utils.cpu_prof import CPUProfiler
from rl4sys.utils.mem_prof import MemoryProfiler
from rl4sys.utils.step_per_sec_log import StepPerSecLogger
from rl4sys.utils.step_statistic import compute_field_statistics
from rl4sys.utils.util import StructuredLogger

from rl4sys.client.agent import RL4SysAgent

if __name__ == "__main__":
    logger = StructuredLogger("JobsInfer", debug=True)
    agent = RL4SysAgent(conf_path="./conf.json")
    memory_profiler = MemoryProfiler("jobs_infer", log_interval=0.5)
    memory_profiler.start_background_profiling()
    cpu_profiler = CPUProfiler("jobs_infer", log_interval=0.5)
    cpu_profiler.start_background_profiling()
    step_logger = StepPerSecLogger("jobs_infer")
    env, traj, summaries = Corridor(), None, []
    for iteration in range(3):
        obs, _ = env.reset()
        done, steps, began = False, 0, time.perf_counter()
        while not done:
            mask = torch.ones(4)
            obs_tensor = torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0)
            traj, rl_action = agent.request_for_action(traj, obs_tensor, mask=mask)
            action = rl_action.act
            if isinstance(action, np.ndarray):
                action = action[0]
            obs, reward, done, _, _ = env.step(int(action))
            steps += 1
        summaries.append({"steps/s": steps / (time.perf_counter() - began)})
        step_logger.log(summaries[-1]["steps/s"])
        logger.warning("Epoch completed", iteration=iteration, version=rl_action.version)
    print(compute_field_statistics(summaries))
    step_logger.close()
    memory_profiler.stop_background_profiling()
    cpu_profiler.stop_background_profiling()
    print("added", 0)

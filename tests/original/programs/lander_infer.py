"""Only asks for actions: nothing is added, rewarded or ended."""

import torch
from corridor import Corridor
from rl4sys.utils.logging_config import RL4SysLogConfig, setup_rl4sys_logging
from rl4sys.utils.util import StructuredLogger

from rl4sys.client.agent import RL4SysAgent

if __name__ == "__main__":
    setup_rl4sys_logging(debug=False)
    config = RL4SysLogConfig.get_default_config(log_level="INFO", structured_logging=True)
    RL4SysLogConfig.setup_logging(config_dict=config)
    logger = StructuredLogger("Infer", debug=False)
    agent = RL4SysAgent(conf_path="./conf.json")
    traj, env = None, Corridor()
    for iteration in range(4):
        obs, _ = env.reset(seed=iteration)
        done = False
        while not done:
            traj, action = agent.request_for_action(traj, torch.as_tensor(obs, dtype=torch.float32).unsqueeze(0))
            obs, reward, done, _, _ = env.step(int(action.act))
        logger.info("Episode completed", version=action.version, reward=reward)
    print("added", 0)

"""Masks by name and actions as bytes."""

import torch
from rl4sys.common.action import RL4SysAction
from rl4sys.common.trajectory import RL4SysTrajectory
from rl4sys.utils.util import deserialize_action, serialize_action

from rl4sys.client.agent import RL4SysAgent

if __name__ == "__main__":
    mask = torch.tensor([1.0, 1.0, 0.0, 1.0])
    made = RL4SysAction(
        obs=torch.randn(6),
        action=torch.tensor([2.0]),
        reward=torch.tensor([1.5]),
        done=False,
        mask=mask,
        data={"logp": torch.tensor([-0.5])},
        version=1,
    )
    again = deserialize_action(serialize_action(made))
    if not torch.allclose(mask, torch.from_numpy(again.mask)) or again.rew != 1.5 or again.data != {"logp": -0.5}:
        raise SystemExit("the action changed")
    agent = RL4SysAgent("./conf.json", debug=True)
    obs = torch.randn(8)
    traj, action = agent.request_for_action(obs=obs)
    print("without a mask:", action.act.shape, action.mask)
    traj, action = agent.request_for_action(obs=obs, mask=mask)
    print("with a mask:", action.act, action.mask)
    traj, action = agent.request_for_action(obs=obs, mask=None)
    agent.add_to_trajectory(traj, action)
    print(isinstance(traj, RL4SysTrajectory), len(traj.actions), traj.actions[-1].mask)
    agent.update_action_reward(action, 1.5)
    print("reward", action.rew)
    agent.mark_end_of_trajectory(traj, action)
    print("completed", traj.is_completed())
    print("added", 1)

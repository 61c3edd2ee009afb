"""PPO of TorchRL, 64×64."""

from __future__ import annotations

from typing import Any

import gymnasium
import torch
from systems import Work
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

_ROLLOUT, _EPOCHS, _MINIBATCH = 2048, 10, 64


class Torchrl:
    """Trains in the loop of the library."""

    def __init__(self, work: Work, seed: int) -> None:
        self._work, self._seed = work, seed
        self._updates = 0

    def train(self, system: gymnasium.Env[Any, Any]) -> None:
        """Train until the environment ends it."""
        torch.manual_seed(self._seed)
        environment = GymWrapper(system, categorical_action_encoding=True)
        inputs = self._work.observation.shape[0]
        scores = TensorDictModule(_network(inputs, int(self._work.action.n)), ["observation"], ["logits"])
        kind = torch.distributions.Categorical
        actor = ProbabilisticActor(
            scores, in_keys=["logits"], spec=environment.action_spec, distribution_class=kind, return_log_prob=True
        )
        critic = ValueOperator(_network(inputs, 1), ["observation"])
        loss = ClipPPOLoss(actor, critic, entropy_coeff=0.0)
        advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic)
        optimizer = torch.optim.Adam(loss.parameters(), 3e-4)
        for batch in Collector(environment, actor, frames_per_batch=_ROLLOUT, total_frames=10**9):
            for _ in range(_EPOCHS):
                advantage(batch)
                for rows in torch.randperm(_ROLLOUT).split(_MINIBATCH):
                    losses = loss(batch[rows])
                    optimizer.zero_grad()
                    (losses["loss_objective"] + losses["loss_critic"]).backward()
                    torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
                    optimizer.step()
            self._updates += 1

    def done(self) -> dict[str, Any]:
        """What it did."""
        return {"updates": self._updates, "used": self._updates * _ROLLOUT}


def _network(inputs: int, outputs: int) -> MLP:
    return MLP(out_features=outputs, in_features=inputs, num_cells=[64, 64], activation_class=torch.nn.Tanh)

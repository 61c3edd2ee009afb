"""PPO of TorchRL, 64×64, behind the inverted loop."""

from __future__ import annotations

from typing import Any

import torch
from inverted_loop import InvertedEnvironment, InvertedLoop
from systems import Work
from tensordict.nn import TensorDictModule
from torchrl.collectors import Collector
from torchrl.envs import GymWrapper
from torchrl.modules import MLP, ProbabilisticActor, ValueOperator
from torchrl.objectives import ClipPPOLoss
from torchrl.objectives.value import GAE

_ROLLOUT, _EPOCHS, _MINIBATCH = 2048, 10, 64


class Torchrl:
    """Trains in a thread of the system's process."""

    def __init__(self, work: Work, seed: int) -> None:
        self._work, self._seed = work, seed
        self._updates = 0
        self.loop = InvertedLoop(self._train)

    def _train(self, loop: InvertedLoop) -> None:
        torch.manual_seed(self._seed)
        inverted = InvertedEnvironment(loop, self._work.observation, self._work.action)
        environment = GymWrapper(inverted, categorical_action_encoding=True)
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

    def close(self) -> dict[str, Any]:
        """End training; what it did."""
        self.loop.close()
        return {"updates": self._updates, "recorded": 1.0, "bytes_per_decision": 0.0}


def _network(inputs: int, outputs: int) -> MLP:
    return MLP(out_features=outputs, in_features=inputs, num_cells=[64, 64], activation_class=torch.nn.Tanh)

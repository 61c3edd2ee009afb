"""What Dreamer and PlaNet learn of the world: an encoder, an RSSM, and heads that predict what is observed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F

from rl4sys.dynamics.encoder import Decoder, Encoder
from rl4sys.dynamics.evidence import Evidence
from rl4sys.dynamics.forecast import Forecast
from rl4sys.dynamics.normed_mlp import NormedMlp
from rl4sys.dynamics.rssm import RSSM, State
from rl4sys.experience import ArraySpec
from rl4sys.networks import TensorMap
from rl4sys.networks.two_hot import BINS, TwoHot, symexp
from rl4sys.policy import Tensor


@dataclass(frozen=True, slots=True)
class ModelSize:
    """How large the networks of a world model are."""

    deter: int
    hidden: int
    groups: int
    classes: int
    units: int
    layers: int
    depth: int
    lr: float
    """A learning rate that suits the size."""
    blocks: int = 8
    update_bias: float = -1.0
    latents: Literal["categorical", "gaussian"] = "categorical"


_DRAWS = 8
"""Draws of latents that a forecast is the mean of."""


class Understanding(NamedTuple):
    """The states that a world model infers for a batch [B, L, …], and how well it predicts."""

    state: State
    loss: torch.Tensor
    metrics: dict[str, torch.Tensor]


@dataclass(frozen=True, slots=True)
class WorldModel:
    """Learns to predict observations, rewards and terminations from states that it also predicts (eq. 3 to 5)."""

    observation: tuple[ArraySpec, ...]
    actions: int
    size: ModelSize
    free_nats: float
    dynamics_scale: float
    representation_scale: float
    discount: float
    """The continue head learns this times whether the episode continues."""
    two_hot: TwoHot | None
    """How rewards are predicted; as plain numbers, by squared error, if not given."""

    @property
    def encoder(self) -> Encoder:
        """Observations to embeddings."""
        return Encoder(self.observation, self.size.units, self.size.layers, self.size.depth)

    @property
    def rssm(self) -> RSSM:
        """States from embeddings and actions."""
        size = self.size
        return RSSM(
            deter=size.deter,
            hidden=size.hidden,
            groups=size.groups,
            classes=size.classes,
            blocks=size.blocks,
            embedding=self.encoder.size,
            actions=self.actions,
            update_bias=size.update_bias,
            kind=size.latents,
        )

    @property
    def decoder(self) -> Decoder:
        """States to observations."""
        return Decoder(self.observation, self.rssm.feature, self.size.units, self.size.layers, self.size.depth)

    @property
    def reward(self) -> NormedMlp:
        """States to the reward, or to its logits."""
        return NormedMlp("reward", self.rssm.feature, self.size.units, 1, BINS if self.two_hot else 1)

    @property
    def continues(self) -> NormedMlp:
        """States to the logit of whether the episode continues."""
        return NormedMlp("continue", self.rssm.feature, self.size.units, 1, 1)

    def tensors(self) -> tuple[Tensor, ...]:
        """What is trained beyond the tensors that acting needs."""
        parts = self.rssm.prior_tensors(), self.decoder.tensors(), self.reward.tensors(), self.continues.tensors()
        return tuple(tensor for part in parts for tensor in part)

    def understand(self, views: TensorMap, batch: Evidence, uniform: torch.Tensor) -> Understanding:
        """Infer the states of a batch; the loss is a mean over its rows with a weight."""
        rows, length = batch.reward.shape
        observation = {name: array.flatten(0, 1) for name, array in batch.observation.items()}
        embedding = self.encoder(views, observation).view(rows, length, -1)
        state, posterior = self.rssm.observe(views, embedding, batch.previous_action, batch.is_first, uniform)
        feature, weight = state.feature().flatten(0, 1), batch.weight.flatten()
        prior = self.rssm.prior(views, state.deter.flatten(0, 1))
        dynamics, representation = self.divergences(posterior.flatten(0, 1), prior)
        losses = {
            "reconstruction": self.decoder.loss(views, feature, observation),
            "reward": self._reward_loss(self.reward(views, feature), batch.reward.flatten()),
            "continue": F.binary_cross_entropy_with_logits(
                self.continues(views, feature).squeeze(-1), batch.continues.flatten() * self.discount, reduction="none"
            ),
            "dynamics": dynamics,
            "representation": representation,
        }
        means = {name: (loss * weight).sum() / weight.sum() for name, loss in losses.items()}
        scales = {"dynamics": self.dynamics_scale, "representation": self.representation_scale}
        total = torch.stack([scales.get(name, 1.0) * mean for name, mean in means.items()]).sum()
        metrics = {f"{name}_loss": mean.detach() for name, mean in means.items()}
        return Understanding(state, total, metrics)

    def divergences(self, posterior: torch.Tensor, prior: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The dynamics and the representation loss [N]: the same number; one trains the prior, one the posterior."""
        divergence = self.rssm.latents.divergence
        dynamics, representation = divergence(posterior.detach(), prior), divergence(posterior, prior.detach())
        return dynamics.clamp(min=self.free_nats), representation.clamp(min=self.free_nats)

    def forecast(self, views: TensorMap, batch: Evidence, context: int) -> Forecast:
        """What follows the first `context` rows of sequences, from the actions alone: the mean over several draws."""
        generator = torch.Generator().manual_seed(0)
        rows, length = batch.reward.shape
        with torch.no_grad():
            seen = {name: array[:, :context].flatten(0, 1) for name, array in batch.observation.items()}
            embedding = self.encoder(views, seen).view(rows, context, -1).repeat(_DRAWS, 1, 1)
            actions, is_first = batch.previous_action.repeat(_DRAWS, 1, 1), batch.is_first.repeat(_DRAWS, 1)
            uniform = torch.rand(_DRAWS * rows, length, self.rssm.groups, generator=generator).to(embedding.device)
            states, _ = self.rssm.observe(
                views, embedding, actions[:, :context], is_first[:, :context], uniform[:, :context]
            )
            state = State(states.deter[:, -1], states.stoch[:, -1])
            observations, rewards = [], []
            for step in range(context, length):
                state = self.rssm.imagine(views, state, actions[:, step], uniform[:, step])
                observations.append(symexp(self.decoder.vectors(views, state.feature())))
                rewards.append(self.predicted_reward(views, state.feature()))
            steps = length - context
            observation = torch.stack(observations, 1).view(_DRAWS, rows, steps, -1).mean(0, keepdim=True)
            reward = torch.stack(rewards, 1).view(_DRAWS, rows, steps).mean(0, keepdim=True)
        return Forecast(observation.cpu().numpy(), reward.cpu().numpy())

    def predicted_reward(self, views: TensorMap, feature: torch.Tensor) -> torch.Tensor:
        """The expected reward [N] in states."""
        output = self.reward(views, feature)
        return output.squeeze(-1) if self.two_hot is None else self.two_hot.predict(output)

    def _reward_loss(self, output: torch.Tensor, reward: torch.Tensor) -> torch.Tensor:
        if self.two_hot is not None:
            return self.two_hot.loss(F.log_softmax(output, -1), reward)
        return (output.squeeze(-1) - reward).square()

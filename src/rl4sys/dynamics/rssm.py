"""The recurrent state-space model of DreamerV3 (arXiv:2301.04104): in torch for training, as ops for acting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch

from rl4sys.dynamics.filter_scan import CellWeights, filter_scan
from rl4sys.dynamics.latent_kinds import CategoricalLatents, GaussianLatents, Latents
from rl4sys.dynamics.normed_mlp import NormedLayer, NormedMlp, write_normed
from rl4sys.networks import TensorMap
from rl4sys.networks.normed_layer import normed
from rl4sys.policy import ProgramBuilder, Tensor

DETER, STOCH, PREVIOUS_ACTION = "rssm.deter", "rssm.stoch", "rssm.previous_action"
"""The memory of a policy that acts with the model."""


class State(NamedTuple):
    """What the model knows of the world: a deterministic part [..., d], and latents [..., n]: one-hots or numbers."""

    deter: torch.Tensor
    stoch: torch.Tensor

    def feature(self) -> torch.Tensor:
        """Both parts side by side: the input of all heads."""
        return torch.cat(self, -1)

    def rows(self) -> State:
        """With all leading axes as one, without a gradient."""
        return State(*(part.detach().flatten(0, -2) for part in self))


@dataclass(frozen=True, slots=True)
class RSSM:
    """h' = f(h, z, a), z ~ q(z | h, x) with an observation x, z ~ p(z | h) without."""

    deter: int
    """Size of h, a multiple of `blocks`."""
    hidden: int
    groups: int
    """Latents."""
    classes: int
    """Classes of each latent, if they are categorical."""
    blocks: int
    embedding: int
    """Size of an encoded observation."""
    actions: int
    """Size of an action as networks see it."""
    update_bias: float = -1.0
    """Added to the update gate: at first the model remembers, the longer the lower it is."""
    kind: Literal["categorical", "gaussian"] = "categorical"
    """What latents are."""

    @property
    def latents(self) -> Latents:
        """How z is distributed."""
        is_gaussian = self.kind == "gaussian"
        return GaussianLatents(self.groups) if is_gaussian else CategoricalLatents(self.groups, self.classes)

    @property
    def stoch(self) -> int:
        """Size of z."""
        return self.latents.size

    @property
    def feature(self) -> int:
        """Size of a state."""
        return self.deter + self.stoch

    def _inputs(self) -> tuple[NormedLayer, NormedLayer, NormedLayer]:
        sizes = ("deter", self.deter), ("stoch", self.stoch), ("action", self.actions)
        from_deter, from_stoch, from_action = (NormedLayer(f"rssm.from_{n}", s, self.hidden) for n, s in sizes)
        return from_deter, from_stoch, from_action

    @property
    def _posterior(self) -> NormedMlp:
        return NormedMlp("rssm.posterior", self.deter + self.embedding, self.hidden, 1, self.latents.outputs)

    @property
    def _prior(self) -> NormedMlp:
        return NormedMlp("rssm.prior", self.deter, self.hidden, 2, self.latents.outputs)

    def prior_tensors(self) -> tuple[Tensor, ...]:
        """Tensors that acting does not need."""
        return self._prior.tensors()

    def initial(self, rows: int, device: torch.device) -> State:
        """The state before an episode: zeros."""
        return State(torch.zeros(rows, self.deter, device=device), torch.zeros(rows, self.stoch, device=device))

    def prior(self, views: TensorMap, deter: torch.Tensor) -> torch.Tensor:
        """p(z | h) [N, groups, …]: probabilities of classes, or a mean and a standard deviation."""
        return self.latents.distribution(self._prior(views, deter))

    def observe(
        self,
        views: TensorMap,
        embedding: torch.Tensor,
        previous_action: torch.Tensor,
        is_first: torch.Tensor,
        uniform: torch.Tensor,
    ) -> tuple[State, torch.Tensor]:
        """Filter sequences [B, L, …] from zeros, again at each `is_first`; returns the states and q(z | h, x).

        `uniform` [B, L, groups] decides the draws. All but the recurrence itself is computed for all rows at once.
        """
        if self.kind == "gaussian":
            return self._observe_row_by_row(views, embedding, previous_action, is_first, uniform)
        rows, length = is_first.shape
        keep = (~is_first).to(embedding.dtype).unsqueeze(-1)
        action = self._inputs()[2](views, (previous_action * keep).flatten(0, 1))
        core, posterior = views["rssm.core.weight"], views["rssm.posterior.0.weight"]
        acted = torch.addmm(views["rssm.core.bias"], action, core[2 * self.hidden :])
        seen = torch.addmm(views["rssm.posterior.0.bias"], embedding.flatten(0, 1), posterior[self.deter :])
        acted, seen = (part.view(rows, length, -1).transpose(0, 1) for part in (acted, seen))
        weights = CellWeights(
            views["rssm.from_deter.weight"],
            views["rssm.from_deter.bias"],
            views["rssm.from_deter.gain"],
            views["rssm.from_stoch.weight"],
            views["rssm.from_stoch.bias"],
            views["rssm.from_stoch.gain"],
            core[: self.hidden],
            core[self.hidden : 2 * self.hidden],
            views["rssm.core.block_weight"],
            views["rssm.core.gain"],
            views["rssm.gates.weight"],
            views["rssm.gates.bias"],
            posterior[: self.deter],
            views["rssm.posterior.0.gain"],
            views["rssm.posterior.out.weight"],
            views["rssm.posterior.out.bias"],
        )
        chance = uniform.transpose(0, 1)
        scan = filter_scan(acted, seen, keep.transpose(0, 1), chance, self.classes, self.update_bias, weights)
        deter, stoch, chances = (part.transpose(0, 1) for part in scan)
        return State(deter, stoch), chances

    def _observe_row_by_row(
        self,
        views: TensorMap,
        embedding: torch.Tensor,
        previous_action: torch.Tensor,
        is_first: torch.Tensor,
        uniform: torch.Tensor,
    ) -> tuple[State, torch.Tensor]:
        """The same without a backward pass of its own: slower, and the same for every kind of latents."""
        rows, length = is_first.shape
        keep = (~is_first).to(embedding.dtype).unsqueeze(-1)
        action = self._inputs()[2](views, (previous_action * keep).flatten(0, 1)).view(rows, length, -1)
        deter, stoch = embedding.new_zeros(rows, self.deter), embedding.new_zeros(rows, self.stoch)
        found = []
        for row in range(length):
            deter = self._recur(views, deter * keep[:, row], stoch * keep[:, row], action[:, row])
            outputs = self._posterior(views, torch.cat([deter, embedding[:, row]], -1))
            posterior = self.latents.distribution(outputs)
            stoch = self.latents.drawn(posterior, uniform[:, row])
            found.append((deter, stoch, posterior))
        deters, stochs, posteriors = (torch.stack(part, 1) for part in zip(*found, strict=True))
        return State(deters, stochs), posteriors

    def imagine(self, views: TensorMap, state: State, action: torch.Tensor, uniform: torch.Tensor) -> State:
        """One step without an observation, for rows [N, …]; `uniform` [N, groups]."""
        deter = self._recur(views, state.deter, state.stoch, self._inputs()[2](views, action))
        return State(deter, self.latents.drawn(self.prior(views, deter), uniform))

    def _recur(self, views: TensorMap, deter: torch.Tensor, stoch: torch.Tensor, action: torch.Tensor) -> torch.Tensor:
        """h' from h, z and the layer over the action."""
        from_deter, from_stoch, _ = self._inputs()
        joined = torch.cat([from_deter(views, deter), from_stoch(views, stoch), action], -1)
        dense = torch.addmm(views["rssm.core.bias"], joined, views["rssm.core.weight"])
        blocks = self._grouped(deter, views["rssm.core.block_weight"])
        core = normed(dense + blocks, views["rssm.core.gain"])
        gates = self._grouped(core, views["rssm.gates.weight"]) + views["rssm.gates.bias"]
        reset, candidate, update = gates.view(len(gates), self.blocks, 3, -1).unbind(-2)
        candidate = torch.tanh(torch.sigmoid(reset) * candidate)
        share = torch.sigmoid(update + self.update_bias)
        return torch.lerp(deter.view(len(deter), self.blocks, -1), candidate, share).flatten(-2)

    def _grouped(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """A product with a block-diagonal matrix."""
        return torch.bmm(x.view(len(x), self.blocks, -1).transpose(0, 1), weight).transpose(0, 1).flatten(-2)

    def write_filter(self, builder: ProgramBuilder, embedding: str, *, draw: bool) -> tuple[str, str]:
        """One step of `observe` as ops, with the state and the previous action as memory.

        Returns the registers of h and z. Without `draw`, z is the most likely one.
        """
        deter, stoch, action = (
            builder.memory(name, (size,))
            for name, size in ((DETER, self.deter), (STOCH, self.stoch), (PREVIOUS_ACTION, self.actions))
        )
        next_deter = self._write_recurrence(builder, deter, stoch, action)
        outputs = self._posterior.write(builder, builder.joined([next_deter, embedding]))
        next_stoch = self.latents.write(builder, outputs, draw=draw)
        builder.remember(DETER, next_deter)
        builder.remember(STOCH, next_stoch)
        return next_deter, next_stoch

    def write_imagination(self, builder: ProgramBuilder, action: str) -> tuple[str, str]:
        """One step of `imagine` as ops, with the state as memory; returns the registers of h and z."""
        deter, stoch = builder.memory(DETER, (self.deter,)), builder.memory(STOCH, (self.stoch,))
        next_deter = self._write_recurrence(builder, deter, stoch, action)
        next_stoch = self.latents.write(builder, self._prior.write(builder, next_deter), draw=True)
        builder.remember(DETER, next_deter)
        builder.remember(STOCH, next_stoch)
        return next_deter, next_stoch

    def _write_recurrence(self, builder: ProgramBuilder, deter: str, stoch: str, action: str) -> str:
        inputs = zip(self._inputs(), (deter, stoch, action), strict=True)
        joined = builder.joined([layer.write(builder, register) for layer, register in inputs])
        width = self.deter // self.blocks
        weight = builder.tensor("rssm.core.weight", 3 * self.hidden, self.deter)
        dense = builder.op("linear", (joined,), (self.deter,), (weight,))
        tensors = (
            builder.tensor("rssm.core.block_weight", self.blocks, width, width),
            builder.tensor("rssm.core.bias", self.deter),
        )
        blocks = builder.op("grouped_linear", (deter,), (self.deter,), tensors)
        core = write_normed(builder, builder.op("add", (dense, blocks), (self.deter,)), "rssm.core")
        shape = (self.blocks, width, 3 * width)
        tensors = builder.tensor("rssm.gates.weight", *shape), builder.tensor("rssm.gates.bias", 3 * self.deter)
        gates = builder.op("grouped_linear", (core,), (3 * self.deter,), tensors)
        settings = {"groups": self.blocks, "update_bias": self.update_bias}
        return builder.op("gate", (gates, deter), (self.deter,), (), **settings)

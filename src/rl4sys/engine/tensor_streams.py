"""Sequences of replay as tensors, for networks with memory: the same batch as transitions, but unrolled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from rl4sys.engine.previous_action import TAKEN
from rl4sys.engine.tensor_batch import TensorBatch, TransitionTensors
from rl4sys.experience import Array, Sequences
from rl4sys.networks import Network, TensorMap
from rl4sys.policy import ActionSpec, action_vectors


class SequencePlan(NamedTuple):
    """What is drawn from replay for networks with memory, and how it is used."""

    burn_in: int
    """Rows that only fill the memory, without gradients."""
    length: int
    """Rows that are learned from."""
    n_step: int
    """Rewards summed before bootstrapping: so many more rows follow."""

    @property
    def rows(self) -> int:
        """Rows of one drawn sequence."""
        return self.burn_in + self.length + self.n_step

    def sequences(self, steps: int) -> int:
        """How many sequences have about so many steps to learn from."""
        return max(1, steps // self.length)


class BurnIn(NamedTuple):
    """The rows before those that are learned from: [B, K, …]."""

    observation: TensorMap
    is_first: torch.Tensor
    action: torch.Tensor


@dataclass(frozen=True, slots=True)
class TensorStreams(TensorBatch):
    """A batch of streams: what is [B] in a `TensorBatch` is [B, L] here, and slicing takes some of the streams.

    Networks are unrolled over all rows, also those that are not learned from: final observations, and the rows
    after the last step. So `next_observation` is `observation`, in which `next_row` finds what followed.
    """

    is_first: torch.Tensor
    learned: torch.Tensor
    """[B, L] bool: the rows to learn from."""
    next_row: torch.Tensor
    """[B, L]: the row from which the value that follows is taken."""
    burn_in: BurnIn

    @property
    def steps(self) -> int:
        """Rows to learn from."""
        return int(self.learned.sum())

    def __getitem__(self, streams: slice) -> TensorStreams:
        observation = {name: array[streams] for name, array in self.observation.items()}
        before = {name: array[streams] for name, array in self.burn_in.observation.items()}
        burn_in = BurnIn(before, self.burn_in.is_first[streams], self.burn_in.action[streams])
        weight = self.weight[: int(self.learned[streams].sum())]  # Ones.
        return TensorStreams(
            observation,
            self.action[streams],
            self.reward[streams],
            self.discount[streams],
            observation,
            weight,
            self.is_first[streams],
            self.learned[streams],
            self.next_row[streams],
            burn_in,
        )

    def outputs(self, network: Network, *extra: torch.Tensor) -> Any:
        """The outputs of a network for all rows [B, L, …]."""
        return network.unroll(self.observation, self.is_first, self._carry(network, extra), *extra)

    def next_outputs(self, network: Network, *extra: torch.Tensor) -> Any:
        """The same: `at_next` chooses."""
        return self.outputs(network, *extra)

    def next_target_outputs(self, network: Network, *extra: torch.Tensor) -> Any:
        """The outputs of the target network for all rows."""
        carry = self._carry(network, extra, target=True)
        return network.target_unroll(self.observation, self.is_first, carry, *extra)

    def at_next(self, values: torch.Tensor) -> torch.Tensor:
        """From values of all rows [B, L] those of what followed."""
        return values.gather(1, self.next_row)

    def rows(self, values: torch.Tensor) -> torch.Tensor:
        """From values of all rows […, B, L] those to learn from: […, N]."""
        return values[..., self.learned]

    def feedback(self, error: torch.Tensor) -> dict[str, torch.Tensor]:
        """Nothing: sequences have no priorities."""
        return {}

    def _carry(self, network: Network, extra: tuple[torch.Tensor, ...], *, target: bool = False) -> TensorMap | None:
        """Memory after the burn-in, computed with the present weights; it starts as zeros."""
        before = self.burn_in
        if not network.has_memory or before.is_first.shape[1] == 0:
            return None
        return network.carry_after(
            before.observation, before.is_first, None, *([before.action] if extra else []), target=target
        )


class StreamTensors:
    """Makes tensors of sequences: burn-in apart, with n-step returns of all steps to learn from."""

    def __init__(
        self, plan: SequencePlan, gamma: float, transitions: TransitionTensors, remembered: ActionSpec | None
    ) -> None:
        """`remembered`: the action, if networks read the previous one."""
        self._plan, self._gamma, self._transitions, self._remembered = plan, gamma, transitions, remembered

    def __call__(self, batch: Sequences) -> TensorStreams:
        """The tensors of a batch."""
        plan, tensor = self._plan, self._transitions.tensor
        action = self._transitions.scaled(tensor(batch.action))
        observation = {name: tensor(array) for name, array in batch.observation.items()}
        if self._remembered is not None:
            observation[TAKEN] = tensor(action_vectors(self._remembered, batch.action))
        is_first, burn = tensor(batch.is_first), plan.burn_in
        acted = batch.acted[:, burn:]
        returns = stream_returns(
            batch.reward[:, burn:], batch.discount[:, burn:], acted, np.float32(self._gamma), plan.n_step
        )
        learned = acted.copy()
        learned[:, plan.length :] = False
        shown = {name: array[:, burn:] for name, array in observation.items()}
        return TensorStreams(
            shown,
            action[:, burn:],
            tensor(returns.reward),
            tensor(returns.discount),
            shown,
            tensor(np.ones(int(learned.sum()), np.float32)),
            is_first[:, burn:],
            tensor(learned),
            tensor(returns.next_row),
            BurnIn(
                {name: array[:, :burn] for name, array in observation.items()}, is_first[:, :burn], action[:, :burn]
            ),
        )


class StreamReturns(NamedTuple):
    """Returns of every row of streams [B, L]; zeros where no action was taken."""

    reward: Array
    """The discounted sum of the next rewards."""
    discount: Array
    """The factor of the value that follows: γⁿ, and 0 after a termination."""
    next_row: Array
    """The row with that value."""


def stream_returns(reward: Array, discount: Array, acted: Array, gamma: np.float32, n_step: int) -> StreamReturns:
    """n-step returns within streams: fewer steps where the episode, or the stream, ends before.

    A row that is not acted lies between any two episodes, so steps are added as long as rows are acted. Row t + 1 is
    what followed row t, so the last row has no return.
    """
    length = reward.shape[1]
    continues = acted.copy()
    continues[:, -1] = False
    total = np.where(continues, reward, np.float32(0.0))
    factor = np.where(continues, gamma * discount, np.float32(0.0))
    next_row = np.arange(length) + continues
    for step in range(1, n_step):
        # The step that is added to row t is row t + step; it must be acted, and something must follow it.
        further = np.zeros_like(continues)
        further[:, : length - step - 1] = acted[:, step:-1]
        continues &= further
        shifted_reward, shifted_discount = np.zeros_like(reward), np.zeros_like(discount)
        shifted_reward[:, :-step], shifted_discount[:, :-step] = reward[:, step:], discount[:, step:]
        total = np.where(continues, total + factor * shifted_reward, total)
        factor = np.where(continues, factor * gamma * shifted_discount, factor)
        next_row = next_row + continues
    return StreamReturns(total.astype(np.float32), factor.astype(np.float32), next_row)

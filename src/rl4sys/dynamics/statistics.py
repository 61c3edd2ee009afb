"""Means and standard deviations of what a model reads and predicts, kept as tensors that travel with its weights."""

from __future__ import annotations

import torch

from rl4sys.networks import Parameters
from rl4sys.policy import ProgramBuilder

_NAMES = ("state", "delta", "reward")
_RUNNING = tuple(f"statistics.{name}.{part}" for name in _NAMES for part in ("mean", "deviation"))
STATE_SCALING = ("scaling.state.mean", "scaling.state.scale")
"""Tensors of the op `standardize` that makes a state of an observation."""
CHANGE_SCALING = ("scaling.change.mean", "scaling.change.scale")
"""The same for the op that makes a change of the state of a predicted change."""
REWARD_SCALING = ("scaling.reward.mean", "scaling.reward.scale")
"""The same for the op that makes a reward of a predicted reward."""
STATISTICS = (*STATE_SCALING, *CHANGE_SCALING, *REWARD_SCALING, *_RUNNING)
"""All of them. They are computed from the data, not learned."""
_NO_VARIANCE = 1e-12
"""Below this an observation is constant, and keeps its unit."""


def declare_statistics(builder: ProgramBuilder, state_size: int) -> None:
    """Declare the tensors in a program."""
    for name in STATISTICS:
        builder.tensor(name, 1 if ".reward." in name else state_size)


class Standardization:
    """Running statistics over the batches that a model learns from.

    A state is an observation in standard deviations from its mean; changes of the observation and rewards are predicted
    in the same way, each in standard deviations of its own.
    """

    def __init__(self, parameters: Parameters, share: float = 0.01) -> None:
        """Each batch counts by `share`; the first ones count equally."""
        self._parameters, self._share = parameters, share
        for name in STATISTICS:
            if name.endswith(("deviation", "scale")):
                parameters.set(name, torch.ones_like(parameters.views[name]))

    def observe(self, batches: int, state: torch.Tensor, delta: torch.Tensor, reward: torch.Tensor) -> None:
        """Count one more batch after so many: rows [B, n] of observations, of their changes, and of rewards [B, 1]."""
        share = max(self._share, 1.0 / (batches + 1))
        for name, rows in zip(_NAMES, (state, delta, reward), strict=True):
            mean, deviation = self._running(name)
            variance, new = torch.var_mean(rows, dim=0, correction=0)
            # That of a mixture of both, whose means differ.
            variance = (1.0 - share) * (deviation**2 + share * (new - mean) ** 2) + share * variance
            self._set(f"statistics.{name}.mean", mean + share * (new - mean))
            self._set(f"statistics.{name}.deviation", torch.where(variance > _NO_VARIANCE, variance.sqrt(), 1.0))
        self._write_scaling()

    def _write_scaling(self) -> None:
        """The statistics as the op `standardize` computes with them: (x − mean) · scale."""
        (mean, deviation), (shift, spread), (reward, reward_spread) = map(self._running, _NAMES)
        for tensors, offset, scale in (
            (STATE_SCALING, mean, 1.0 / deviation),
            (CHANGE_SCALING, -shift / spread, spread / deviation),
            (REWARD_SCALING, -reward / reward_spread, reward_spread),
        ):
            self._set(tensors[0], offset)
            self._set(tensors[1], scale)

    def standardized(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """Values [..., n] of `state`, `delta` or `reward` in standard deviations from their mean."""
        mean, deviation = self._running(name)
        return (values - mean) / deviation

    def restored(self, name: str, values: torch.Tensor) -> torch.Tensor:
        """The reverse of `standardized`."""
        mean, deviation = self._running(name)
        return mean + values * deviation

    def deviation(self, name: str) -> torch.Tensor:
        """The standard deviation."""
        return self._running(name)[1]

    def _running(self, name: str) -> tuple[torch.Tensor, torch.Tensor]:
        views = self._parameters.views
        return views[f"statistics.{name}.mean"].detach(), views[f"statistics.{name}.deviation"].detach()

    def _set(self, name: str, value: torch.Tensor) -> None:
        self._parameters.set(name, value)

"""The recurrence of an RSSM over whole sequences, as one step of autograd with its own backward pass.

Only what depends on the previous row is inside the loop, and gradients of the weights are products over all rows after
it. Autograd would keep some fifty nodes for each row, and add to each gradient once a row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.autograd.function import once_differentiable

from rl4sys.dynamics.latents import UNIMIX, one_hot
from rl4sys.networks.normed_layer import EPSILON


class CellWeights(NamedTuple):
    """The tensors inside the loop. Norms are RMS norms with a gain, followed by SiLU."""

    deter_weight: torch.Tensor
    deter_bias: torch.Tensor
    deter_gain: torch.Tensor
    stoch_weight: torch.Tensor
    stoch_bias: torch.Tensor
    stoch_gain: torch.Tensor
    core_from_deter: torch.Tensor
    core_from_stoch: torch.Tensor
    core_blocks: torch.Tensor
    core_gain: torch.Tensor
    gate_blocks: torch.Tensor
    gate_bias: torch.Tensor
    posterior_weight: torch.Tensor
    posterior_gain: torch.Tensor
    logit_weight: torch.Tensor
    logit_bias: torch.Tensor


class Scan(NamedTuple):
    """Results for all rows, time first [L, B, …]."""

    deter: torch.Tensor
    stoch: torch.Tensor
    posterior: torch.Tensor
    """[L, B, groups, classes]"""


def filter_scan(
    acted: torch.Tensor,
    seen: torch.Tensor,
    keep: torch.Tensor,
    uniform: torch.Tensor,
    classes: int,
    update_bias: float,
    weights: CellWeights,
) -> Scan:
    """Filter from zeros. `acted` [L, B, d] and `seen` [L, B, h] are what the action and the observation add.

    `keep` [L, B, 1] is 0 where an episode begins; `uniform` [L, B, groups] decides the draws.
    """
    return Scan(*_FilterScan.apply(acted, seen, keep, uniform, classes, update_bias, *weights))  # type: ignore[no-untyped-call]  # torch lacks it


class _Normed(NamedTuple):
    """silu(gain · y / rms(y)): the result, and what its derivative needs."""

    result: torch.Tensor
    unit: torch.Tensor
    root: torch.Tensor
    sigmoid: torch.Tensor

    @classmethod
    def of(cls, y: torch.Tensor, gain: torch.Tensor) -> _Normed:
        root = torch.rsqrt(y.square().mean(-1, keepdim=True).add_(EPSILON))
        unit = y * root
        level = unit * gain
        sigmoid = torch.sigmoid(level)
        return cls(level.mul_(sigmoid), unit, root, sigmoid)


class _NormedRows:
    """The same for all rows of a scan, and its backward pass."""

    def __init__(self, rows: list[_Normed], gain: torch.Tensor) -> None:
        self.result, self.unit, self.root, sigmoid = (torch.stack(part) for part in zip(*rows, strict=True))
        # silu'(l) = s + silu(l) · (1 − s), with s = sigmoid(l).
        self._slope = torch.addcmul(sigmoid, self.result, 1.0 - sigmoid)
        self._scaled_slope = self._slope * gain
        self._by_result: list[torch.Tensor] = []

    def backward(self, row: int, by_result: torch.Tensor) -> torch.Tensor:
        """The gradient of y; rows are passed from the last to the first."""
        self._by_result.append(by_result)
        by_unit, unit = by_result * self._scaled_slope[row], self.unit[row]
        return self.root[row] * torch.addcmul(by_unit, unit, (by_unit * unit).mean(-1, keepdim=True), value=-1.0)

    def by_gain(self) -> torch.Tensor:
        """The gradient of the gain."""
        return (torch.stack(self._by_result[::-1]) * self._slope * self.unit).flatten(0, 1).sum(0)


def _grouped(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """[B, n · i] times blocks [n, i, o] is [B, n · o]."""
    return torch.bmm(x.view(len(x), len(weight), -1).transpose(0, 1), weight).transpose(0, 1).reshape(len(x), -1)


def _rows(tensor: torch.Tensor) -> torch.Tensor:
    """[L, B, …] as [L · B, …]."""
    return tensor.flatten(0, 1)


def _by_blocks(x: torch.Tensor, by_result: torch.Tensor, blocks: int) -> torch.Tensor:
    """The gradient [n, i, o] of blocks, from inputs [N, n · i] and gradients of results [N, n · o]."""
    inputs, gradients = (part.reshape(len(part), blocks, -1) for part in (x, by_result))
    return torch.bmm(inputs.permute(1, 2, 0), gradients.transpose(0, 1))


class _FilterScan(torch.autograd.Function):
    """The loop over time."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[torch.Tensor, ...]:
        acted, seen, keep, uniform, classes, update_bias = inputs[:6]
        w = CellWeights(*inputs[6:])
        blocks, batch = len(w.core_blocks), acted.shape[1]
        deter = acted.new_zeros(batch, w.deter_weight.shape[0])
        stoch = acted.new_zeros(batch, w.stoch_weight.shape[0])
        rows: list[tuple[Any, ...]] = []
        for row in range(len(acted)):
            deter, stoch = deter * keep[row], stoch * keep[row]
            from_deter = _Normed.of(torch.addmm(w.deter_bias, deter, w.deter_weight), w.deter_gain)
            from_stoch = _Normed.of(torch.addmm(w.stoch_bias, stoch, w.stoch_weight), w.stoch_gain)
            y = torch.addmm(acted[row], from_deter.result, w.core_from_deter).addmm_(
                from_stoch.result, w.core_from_stoch
            )
            core = _Normed.of(y.add_(_grouped(deter, w.core_blocks)), w.core_gain)
            gates = _grouped(core.result, w.gate_blocks).add_(w.gate_bias).view(batch, blocks, 3, -1)
            reset = torch.sigmoid(gates[:, :, 0]).flatten(1)
            proposal = gates[:, :, 1].flatten(1)
            candidate = torch.tanh(reset * proposal)
            update = torch.sigmoid(gates[:, :, 2] + update_bias).flatten(1)
            change = candidate - deter
            following = torch.addcmul(deter, update, change)
            hidden = _Normed.of(torch.addmm(seen[row], following, w.posterior_weight), w.posterior_gain)
            logits = torch.addmm(w.logit_bias, hidden.result, w.logit_weight)
            softmax = logits.view(batch, -1, classes).softmax(-1)
            drawn = one_hot(softmax * (1.0 - UNIMIX) + UNIMIX / classes, uniform[row])
            gate = (reset, proposal, candidate, update, change)
            rows.append((deter, stoch, from_deter, from_stoch, core, hidden, *gate, following, drawn, softmax))
            deter, stoch = following, drawn
        columns = list(zip(*rows, strict=True))
        ctx.rows = columns[:11]
        ctx.weights, ctx.blocks = w, blocks
        results, draws, softmaxes = (torch.stack(column) for column in columns[11:])
        ctx.save_for_backward(keep, results, softmaxes)
        return results, draws, softmaxes * (1.0 - UNIMIX) + UNIMIX / classes

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        by_deter, by_stoch, by_posterior = gradients
        keep, results, softmax = ctx.saved_tensors
        w, blocks = ctx.weights, ctx.blocks
        deters, stochs, *normed, resets, proposals, candidates, updates, changes = ctx.rows
        gains = w.deter_gain, w.stoch_gain, w.core_gain, w.posterior_gain
        from_deter, from_stoch, core, hidden = (_NormedRows(list(n), g) for n, g in zip(normed, gains, strict=True))
        reset, proposal, candidate, update, change = map(torch.stack, (resets, proposals, candidates, updates, changes))
        deter, stoch = torch.stack(deters), torch.stack(stochs)
        del ctx.rows
        # Factors that do not depend on gradients, for all rows at once.
        through_candidate = update * (1.0 - candidate.square())
        through_update = change * update * (1.0 - update)
        through_reset = through_candidate * proposal * reset * (1.0 - reset)
        through_proposal = through_candidate * reset
        gate_factors = torch.stack(
            [part.view(*part.shape[:-1], blocks, -1) for part in (through_reset, through_proposal, through_update)], -2
        )
        kept = 1.0 - update
        turned = [
            weight.transpose(-1, -2)
            for weight in (
                w.deter_weight,
                w.stoch_weight,
                w.core_from_deter,
                w.core_from_stoch,
                w.core_blocks,
                w.gate_blocks,
                w.posterior_weight,
                w.logit_weight,
            )
        ]
        deter_t, stoch_t, core_deter_t, core_stoch_t, core_blocks_t, gate_blocks_t, posterior_t, logit_t = turned
        batch = deter.shape[1]
        next_deter, next_stoch = torch.zeros_like(deter[0]), torch.zeros_like(stoch[0])
        collected: list[tuple[torch.Tensor, ...]] = []
        share = 1.0 - UNIMIX
        for row in range(len(deter) - 1, -1, -1):
            # The draw passes its gradient straight to the probabilities.
            by_softmax = (by_posterior[row] + (by_stoch[row] + next_stoch).view_as(by_posterior[row])) * softmax[row]
            by_logits = (by_softmax - softmax[row] * by_softmax.sum(-1, keepdim=True)).mul_(share).view(batch, -1)
            by_seen = hidden.backward(row, by_logits @ logit_t)
            by_following = torch.addmm(by_deter[row] + next_deter, by_seen, posterior_t)
            by_gates = (by_following.view(batch, blocks, 1, -1) * gate_factors[row]).view(batch, -1)
            by_acted = core.backward(row, _grouped(by_gates, gate_blocks_t))
            by_from_deter = from_deter.backward(row, by_acted @ core_deter_t)
            by_from_stoch = from_stoch.backward(row, by_acted @ core_stoch_t)
            by_previous = torch.addcmul(_grouped(by_acted, core_blocks_t), by_following, kept[row])
            next_deter = by_previous.addmm_(by_from_deter, deter_t).mul_(keep[row])
            next_stoch = (by_from_stoch @ stoch_t).mul_(keep[row])
            collected.append((by_logits, by_seen, by_gates, by_acted, by_from_deter, by_from_stoch))
        rows = [torch.stack(part[::-1]) for part in zip(*collected, strict=True)]
        logits, seen, gates, acted, from_d, from_s = map(_rows, rows)
        deter, stoch, results = _rows(deter), _rows(stoch), _rows(results)
        weights = CellWeights(
            deter.T @ from_d,
            from_d.sum(0),
            from_deter.by_gain(),
            stoch.T @ from_s,
            from_s.sum(0),
            from_stoch.by_gain(),
            _rows(from_deter.result).T @ acted,
            _rows(from_stoch.result).T @ acted,
            _by_blocks(deter, acted, blocks),
            core.by_gain(),
            _by_blocks(_rows(core.result), gates, blocks),
            gates.sum(0),
            results.T @ seen,
            hidden.by_gain(),
            _rows(hidden.result).T @ logits,
            logits.sum(0),
        )
        return rows[3], rows[1], None, None, None, None, *weights

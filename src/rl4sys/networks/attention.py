"""Attention over the last decisions in torch, one decision at a time; its keys and values are a ring in the carry."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from rl4sys.networks.group_functions import parts_of
from rl4sys.policy import Op
from rl4sys.policy.policy_spec import number


def attention(op: Op, inputs: Sequence[torch.Tensor], tensors: Sequence[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    """Write key and value over the oldest row of the ring, then look at all rows that were ever written."""
    query, key, value, keys, values, count = inputs
    (bias,) = tensors
    heads, window = int(number(op.settings, "heads", "op 'attention'")), keys.shape[1]
    slot = count.long() % window
    places = torch.arange(window, device=count.device)
    is_slot = (places == slot).unsqueeze(-1)
    keys, values = torch.where(is_slot, key.unsqueeze(1), keys), torch.where(is_slot, value.unsqueeze(1), values)
    age = (slot - places) % window
    # [rows, window, heads, d / heads] with [rows, 1, heads, d / heads]
    product = (parts_of(query, heads, -1).unsqueeze(1) * parts_of(keys, heads, -1)).sum(-1)
    scores = product / math.sqrt(query.shape[-1] // heads) + bias.T[age]
    weights = torch.softmax(scores.masked_fill((age > count).unsqueeze(-1), -math.inf), dim=1)
    result = (weights.unsqueeze(-1) * parts_of(values, heads, -1)).sum(1).flatten(-2)
    following = count + 1.0
    return result, keys, values, torch.where(following >= 2 * window, following - window, following)

"""Recurrent ops over whole streams in one call: torch's LSTM and GRU kernels, and attention over a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F

from rl4sys.networks.stream_batch import Packed, StreamRun
from rl4sys.policy import Memory, Op
from rl4sys.policy.policy_spec import number

Many = Sequence[torch.Tensor]
Kernel = Callable[[Op, StreamRun, Many, Many, Many], tuple[torch.Tensor, Many]]
"""From rows [B·L, …], memories [B, …] and tensors to a result [B·L, …] and the memories after the last rows."""


def lstm(op: Op, run: StreamRun, rows: Many, memories: Many, tensors: Many) -> tuple[torch.Tensor, Many]:
    """All episodes in a few calls of torch's kernel; its gates have our order, and its weights are transposed."""
    if run.wants_carry:
        return _packed_lstm(run, rows, memories, tensors)
    weights, (groups, place) = _turned(tensors), run.fragments.padded
    hidden, cell = (run.fragments.initial(memory) for memory in memories)
    found = []
    for group in groups:
        count = len(group.fragments)
        x = rows[0].index_select(0, group.rows).view(group.length, count, -1)
        initial = tuple(memory.index_select(0, group.fragments).unsqueeze(0) for memory in (hidden, cell))
        result, _, _ = torch.lstm(x, initial, weights, True, 1, 0.0, True, False, False)
        found.append(result.flatten(0, 1))
    return torch.cat(found).index_select(0, place), []


def _packed_lstm(run: StreamRun, rows: Many, memories: Many, tensors: Many) -> tuple[torch.Tensor, Many]:
    """The same with packed episodes, which leaves the memory after the last row of each: slower."""
    fragments, packed = run.fragments, run.fragments.packed
    initial = tuple(_in_order(run, memory) for memory in memories)
    x = rows[0].index_select(0, packed.rows)
    result, *after = torch.lstm(x, packed.batch_sizes, initial, _turned(tensors), True, 1, 0.0, True, False)
    return result.index_select(0, packed.place), [_after(each[0], packed, fragments.last) for each in after]


def gru(op: Op, run: StreamRun, rows: Many, memories: Many, tensors: Many) -> tuple[torch.Tensor, Many]:
    """All episodes in one call of torch's kernel."""
    fragments, packed = run.fragments, run.fragments.packed
    initial = _in_order(run, memories[0])
    x = rows[0].index_select(0, packed.rows)
    result, hidden = torch.gru(x, packed.batch_sizes, initial, _turned(tensors), True, 1, 0.0, True, False)
    return result.index_select(0, packed.place), [_after(hidden[0], packed, fragments.last)]


def _in_order(run: StreamRun, memory: torch.Tensor) -> torch.Tensor:
    """Memory before each fragment, the longest first: [1, fragments, h]."""
    return run.fragments.initial(memory).index_select(0, run.fragments.packed.order).unsqueeze(0)


def _after(memory: torch.Tensor, packed: Packed, last: torch.Tensor) -> torch.Tensor:
    """Memory after the last row of each stream."""
    by_fragment = torch.empty_like(memory).index_copy(0, packed.order, memory)
    return by_fragment.index_select(0, last)


def _turned(tensors: Many) -> list[torch.Tensor]:
    input_weight, hidden_weight, input_bias, hidden_bias = tensors
    return [input_weight.t(), hidden_weight.t(), input_bias, hidden_bias]


def attention(op: Op, run: StreamRun, rows: Many, memories: Many, tensors: Many) -> tuple[torch.Tensor, Many]:
    """Every row attends to at most `window` rows of its own episode, itself included, and to the ring cache.

    In blocks of rows: each sees itself and the `window` rows before it, of which the cache are the first.
    """
    heads, (bias,) = int(number(op.settings, "heads", "op 'attention'")), tensors
    window, streams, length = bias.shape[1], run.streams, run.length
    query, key, value = (run.by_time(row, stacked=False) for row in rows)
    count = memories[2].squeeze(-1).long()
    # Oldest first: the row of age a lies in slot (count − a) mod window.
    slots = (count.unsqueeze(1) + torch.arange(window, device=count.device)) % window
    written = torch.arange(window, 0, -1, device=count.device) <= count.clamp(max=window).unsqueeze(1)
    earlier = [torch.take_along_dim(ring, slots.unsqueeze(-1), 1) for ring in memories[:2]]
    key, value = (torch.cat(pair, 1) for pair in zip(earlier, (key, value), strict=True))
    episode = run.is_first.cumsum(1)
    # Rows of one episode have one number; the cache continues into episode 0, what was never written into none.
    belongs = torch.cat([torch.where(written, 0, -1), episode], 1)
    block = min(window, length)
    padding = -length % block
    if padding:
        query, key, value = (F.pad(array, (0, 0, 0, padding)) for array in (query, key, value))
    asks, sees = (F.pad(array, (0, padding), value=-2) for array in (episode, belongs))
    asks, sees = asks.reshape(streams, -1, block), sees.unfold(1, window + block, block)
    age = window + torch.arange(block, device=count.device).unsqueeze(1)
    age = age - torch.arange(window + block, device=count.device)
    visible = (asks.unsqueeze(3) == sees.unsqueeze(2)) & (age >= 0) & (age < window)
    q = query.reshape(streams, -1, block, heads, query.shape[2] // heads).transpose(2, 3)
    # [B, blocks, heads, width, window + block]
    k, v = (_in_blocks(array, heads, window + block, block) for array in (key, value))
    scores = q @ k * (q.shape[-1] ** -0.5) + bias[:, age.clamp(0, window - 1)]
    shares = scores.masked_fill(~visible.unsqueeze(2), -torch.inf).softmax(-1)
    result = (shares @ v.transpose(3, 4)).transpose(2, 3).flatten(3).flatten(1, 2)[:, :length]
    if not run.wants_carry:
        return result.flatten(0, 1), []
    return result.flatten(0, 1), _ring(run, belongs, count, (key, value), window)


def _in_blocks(array: torch.Tensor, heads: int, size: int, step: int) -> torch.Tensor:
    """[B, blocks, heads, width, size] from rows [B, L, heads · width]."""
    blocks = array.unfold(1, size, step)
    return blocks.reshape(*blocks.shape[:2], heads, blocks.shape[2] // heads, size)


def _ring(run: StreamRun, belongs: torch.Tensor, count: torch.Tensor, arrays: Many, window: int) -> Many:
    """The ring cache after the last rows: its newest rows of the last episode, at their slots, and their count."""
    episode, length = belongs[:, -1:], run.length
    since = (belongs[:, window:] == episode).sum(1)
    total = torch.where(episode[:, 0] == 0, count + since, since)
    total = torch.where(total < 2 * window, total, window + total % window)
    kept = (belongs[:, length : length + window] == episode).unsqueeze(-1)
    slots = (total.unsqueeze(1) + torch.arange(window, device=count.device)) % window
    rings = []
    for array in arrays:
        newest = array[:, length : length + window] * kept
        rings.append(torch.zeros_like(newest).scatter(1, slots.unsqueeze(-1).expand_as(newest), newest))
    return [*rings, total.unsqueeze(1).to(torch.float32)]


KERNELS: Mapping[str, tuple[Kernel, int]] = {"lstm": (lstm, 1), "gru": (gru, 1), "attention": (attention, 3)}
"""Ops that have one, and how many of their inputs come before their memories."""


def has_kernel(op: Op, memories: Sequence[Memory]) -> bool:
    """Whether this op with exactly these memories is what its kernel computes."""
    if op.kind not in KERNELS:
        return False
    first = KERNELS[op.kind][1]
    written = op.outputs[len(op.outputs) - len(op.inputs) + first :]
    expected = dict(zip(op.inputs[first:], written, strict=True))
    return expected == {memory.name: memory.next for memory in memories} and not set(op.inputs[:first]) & set(expected)

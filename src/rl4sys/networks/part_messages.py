"""What ranks tell each other about their parts of a batch: one message of each, with its gradient and its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from rl4sys.experience import Array

if TYPE_CHECKING:
    from rl4sys.networks.rank_parts import RankExchange


@dataclass(frozen=True, slots=True)
class PartReport:
    """The results of one part."""

    found: tuple[torch.Tensor, ...]
    """Empty if the part has no rows."""
    drew_noise: bool
    local_parts: int
    """Parts into which the rank has split its own."""

    def encoded(self) -> torch.Tensor:
        """All of it as int32, on the device of the results: a description of shapes, then the bits of the numbers."""
        for tensor in self.found:
            if tensor.dtype != torch.float32:
                raise TypeError(
                    f"A loss returned a tensor of type {tensor.dtype}; with training.ranks above 1, losses and "
                    f"networks return float32."
                )
        shapes = [number for tensor in self.found for number in (tensor.ndim, *tensor.shape)]
        head = torch.tensor([int(self.drew_noise), self.local_parts, len(self.found), *shapes], dtype=torch.int32)
        if not self.found:
            return head
        flat = [tensor.detach().contiguous().view(-1).view(torch.int32) for tensor in self.found]
        return torch.cat([head.to(flat[0].device), *flat])

    @classmethod
    def decoded(cls, message: torch.Tensor) -> PartReport:
        """The inverse of `encoded`; the results are copies."""
        device, numbers = message.device, message.cpu().numpy()
        drew_noise, local_parts, count = (int(number) for number in numbers[:3])
        shapes, place = [], 3
        for _ in range(count):
            dimensions = int(numbers[place])
            shapes.append(tuple(int(size) for size in numbers[place + 1 : place + 1 + dimensions]))
            place += 1 + dimensions
        found = []
        for shape in shapes:
            size = int(np.prod(shape))
            found.append(_floats(numbers[place : place + size]).view(shape).to(device))
            place += size
        return cls(tuple(found), bool(drew_noise), local_parts)


class PartMessages:
    """Exchanges reports and gradients in one collective call, once their usual length is known."""

    def __init__(self, exchange: RankExchange, ranks: int) -> None:
        self._exchange, self._ranks = exchange, ranks
        self._room: dict[int, int] = {}
        """By the length of the gradient: the most numbers that a report has had."""
        self._blocks: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def exchange(self, report: PartReport, gradient: torch.Tensor | None = None) -> list[PartReport]:
        """The reports of all ranks, in their order; `gradient` becomes the sum of all gradients in that order."""
        size = 0 if gradient is None else len(gradient)
        # A part without rows has no results, and so no device of its own.
        mine = report.encoded() if gradient is None else report.encoded().to(gradient.device)
        room = self._room.setdefault(size, 0)
        message, everyone = self._block(1 + size + room, mine.device, size)
        message[0] = len(mine)
        if gradient is not None:
            message[1 : 1 + size].copy_(gradient.view(torch.int32))
        if len(mine) <= room:
            message[1 + size : 1 + size + len(mine)].copy_(mine)
        self._exchange.gather(message, everyone)
        if gradient is not None:
            sums = everyone[:, 1 : 1 + size].view(torch.float32)
            gradient.zero_()
            for rank in range(self._ranks):
                gradient.add_(sums[rank])
        lengths: list[int] = everyone[:, 0].tolist()
        reports = everyone[:, 1 + size :] if max(lengths) <= room else self._long(mine, max(lengths), size)
        return [PartReport.decoded(each[:length]) for each, length in zip(reports, lengths, strict=True)]

    def _long(self, mine: torch.Tensor, longest: int, size: int) -> torch.Tensor:
        """Reports that did not fit: once more, with enough room from now on."""
        self._room[size] = longest
        message = torch.zeros(longest, dtype=torch.int32, device=mine.device)
        message[: len(mine)] = mine
        everyone = torch.zeros(self._ranks, longest, dtype=torch.int32, device=mine.device)
        self._exchange.gather(message, everyone)
        return everyone

    def _block(self, length: int, device: torch.device, size: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Memory for one exchange, kept for the next one of this kind."""
        block = self._blocks.get(size)
        if block is None or len(block[0]) != length:
            shapes: Sequence[tuple[int, ...]] = ((length,), (self._ranks, length))
            message, everyone = (torch.zeros(shape, dtype=torch.int32, device=device) for shape in shapes)
            self._blocks[size] = block = message, everyone
        return block


def _floats(numbers: Array) -> torch.Tensor:
    return torch.from_numpy(numbers.view(np.float32).copy())

"""Gradients of batches that do not fit into memory: computed part by part, and summed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import torch

from rl4sys.networks.dense import release_workspaces
from rl4sys.networks.parameters import Parameters, Part

_log = logging.getLogger(__name__)

Found = TypeVar("Found")
Rows: TypeAlias = slice | None
"""The rows of a part; None for all of them."""
_CPU = ("can't allocate memory", "not enough memory")
"""How torch says that the machine, and not a device, has no memory left."""


class Accumulation:
    """Takes a batch as a whole until memory runs out; from then on in halves, quarters, … as long as that helps.

    The sum is the same gradient but for rounding. So as not to change the bits of a run that has enough memory, nothing
    is split before that.
    """

    def __init__(self) -> None:
        self.parts = 1
        """Parts that a batch is taken in."""

    def gradient(self, parameters: Parameters | Part, rows: int, add: Callable[[Rows], Found]) -> list[Found]:
        """Compute a gradient; returns what `add` returned for each part.

        `add` is given the rows of a part and adds the share that they have in the gradient of the whole.
        """
        return self._all(rows, add, parameters.gradient.zero_)

    def results(self, rows: int, compute: Callable[[Rows], Found]) -> list[Found]:
        """Compute something that has no gradient; returns the result of each part."""
        return self._all(rows, compute, _nothing)

    def _all(self, rows: int, compute: Callable[[Rows], Found], begin: Callable[[], object]) -> list[Found]:
        while True:
            begin()
            try:
                if self.parts == 1:
                    return [compute(None)]
                size = -(-rows // self.parts)
                return [compute(slice(first, min(first + size, rows))) for first in range(0, rows, size)]
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error) or self.parts >= rows:
                    raise
                cause = str(error).partition("\n")[0]
            # Out of the handler, whose traceback holds on to the memory of what failed.
            self._split(rows, cause)

    def _split(self, rows: int, cause: str) -> None:
        self.parts *= 2
        release_workspaces()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        _log.warning(
            "Out of memory: batches of %d rows are taken in %d parts from now on; results differ by rounding. (%s)",
            *(rows, self.parts, cause),
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory, of the machine or of a device, has run out."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in _CPU)


def rows_of(tensor: torch.Tensor, part: Rows) -> torch.Tensor:
    """The rows of a part."""
    return tensor if part is None else tensor[part]


def rows_of_all(tensors: Mapping[str, torch.Tensor], part: Rows) -> Mapping[str, torch.Tensor]:
    """The rows of a part, of each tensor."""
    return tensors if part is None else {name: tensor[part] for name, tensor in tensors.items()}


def joined(parts: Sequence[tuple[torch.Tensor, ...]], axis: int = 0) -> tuple[torch.Tensor, ...]:
    """The results of all parts as one, along the axis that their rows lie on."""
    return parts[0] if len(parts) == 1 else tuple(torch.cat(arrays, axis) for arrays in zip(*parts, strict=True))


def _nothing() -> None:
    pass

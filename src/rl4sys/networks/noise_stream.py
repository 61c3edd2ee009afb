"""The random numbers of training, drawn so that they do not depend on which process computes a part of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_SEEDS = 2**62


class NoiseStream:
    """A generator; what is drawn within a part of a batch comes from a generator of that part.

    The generators of parts are derived from the state of the main one, so rank k of N draws what a single process
    draws for part k. They are made at the first draw: where no noise is drawn, nothing changes.
    """

    def __init__(self, generator: torch.Generator) -> None:
        self.main = generator
        """Its state is all that has to be saved."""
        self.was_drawn_from = False
        """Whether noise was drawn within a part since the last `advance`."""
        self._number: int | None = None
        self._of_part: torch.Generator | None = None

    @property
    def is_in_part(self) -> bool:
        """Whether a part of a batch is being computed."""
        return self._number is not None

    @property
    def generator(self) -> torch.Generator:
        """The generator to draw from now."""
        if self._number is None:
            return self.main
        if self._of_part is None:
            twin = torch.Generator()
            twin.set_state(self.main.get_state())
            seeds = torch.randint(_SEEDS, (self._number + 1,), generator=twin)
            self._of_part, self.was_drawn_from = torch.Generator().manual_seed(int(seeds[-1])), True
        return self._of_part

    @contextmanager
    def part(self, number: int) -> Iterator[None]:
        """Draw for one part of a batch within this context."""
        self._number, self._of_part = number, None
        try:
            yield
        finally:
            self._number, self._of_part = None, None

    def advance(self, parts: int, *, was_drawn_from: bool) -> None:
        """After all parts of a batch: never derive the same generators again."""
        if was_drawn_from:
            torch.randint(_SEEDS, (parts,), generator=self.main)
        self.was_drawn_from = False

"""Gradient norms per optimizer and per tensor, with warnings about suspicious ones."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

import torch

from rl4sys.engine import Algorithm

_log = logging.getLogger(__name__)

_HUGE = 1e4
_LOOKS_AT_ZERO = 3
"""Looks in a row at a gradient of zeros before a warning."""


@dataclass(frozen=True, slots=True)
class Gradients:
    """What one look found."""

    norms: dict[str, float]
    """By optimizer, before clipping."""
    tensors: dict[str, float]
    """By group and tensor, as they were used (after clipping)."""

    def to_json(self) -> dict[str, Any]:
        """As names and numbers; what is not finite becomes null."""
        return {
            "norms": {name: _number(value) for name, value in self.norms.items()},
            "tensors": {name: _number(value) for name, value in self.tensors.items()},
        }


def gradients_of(algorithm: Algorithm) -> Gradients:
    """The gradients of the last update of each optimizer, without tensors that are not trained."""
    optimizers = algorithm.train_state.optimizers
    tensors = {
        f"{network}/{name}": float(torch.linalg.vector_norm(view.grad))
        for network, optimizer in optimizers.items()
        for name, view in optimizer.parameters.views.items()
        if view.requires_grad and view.grad is not None
    }
    return Gradients({name: float(optimizer.gradient_norm) for name, optimizer in optimizers.items()}, tensors)


class GradientChecks:
    """Warns, once for each tensor, of gradients that are huge, or zero time and again."""

    def __init__(self) -> None:
        self._zeros: dict[str, int] = {}
        self._warned: set[str] = set()

    def check(self, found: Gradients, step: int) -> list[str]:
        """New warnings about suspicious gradients."""
        complaints = []
        for name, norm in (found.norms | found.tensors).items():
            self._zeros[name] = self._zeros.get(name, 0) + 1 if norm == 0.0 else 0
            if name in self._warned:
                continue
            if not norm < _HUGE:
                complaints.append(f"the gradient of {name} has norm {norm:.3g}")
            elif self._zeros[name] == _LOOKS_AT_ZERO:
                complaints.append(f"{name} got a gradient of zeros {_LOOKS_AT_ZERO} times in a row: it does not learn")
            else:
                continue
            self._warned.add(name)
        for complaint in complaints:
            _log.warning("At step %s %s.", f"{step:,}", complaint)
        return complaints


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None

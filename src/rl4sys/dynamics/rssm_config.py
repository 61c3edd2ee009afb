"""The recurrent state-space model by name: sizes of its parts, where they are to differ from those of the algorithm."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from rl4sys.dynamics.config import DynamicsConfig, register_dynamics
from rl4sys.dynamics.world_model import ModelSize


@register_dynamics("rssm")
class RSSMConfig(DynamicsConfig):
    """A recurrent state and latents, inferred from sequences of observations: numbers, images or both."""

    deter: int | None = Field(None, ge=1)
    """Units of the recurrent state, a multiple of `blocks`. More remember more; null takes those of `size`."""
    hidden: int | None = Field(None, ge=1)
    """Units of the layers around it; null takes those of `size`."""
    latents: Literal["categorical", "gaussian"] | None = None
    """`categorical`, which null stands for: each a choice among `classes`, as in DreamerV3. `gaussian`: each a normal
    variable with a standard deviation of at least 0.1, as in PlaNet, whose updates are slower."""
    groups: int | None = Field(None, ge=1, le=1024)
    """How many latents there are; null takes those of `size`."""
    classes: int | None = Field(None, ge=2)
    """Classes of each categorical latent; null takes those of `size`."""
    blocks: int | None = Field(None, ge=1)
    """Parts of the recurrent state with weights of their own; more make it cheaper. Null takes those of `size`."""

    update_bias: float | None = Field(None, le=0)
    """Added to the update gate of the recurrent state. At first the state keeps the share 1 − sigmoid(update_bias) of
    itself in each step: 0.73 with −1, which null stands for, and 0.95 with −3. A lower one remembers for longer."""

    def sized(self, size: ModelSize) -> ModelSize:
        """These sizes, and those of `size` where none is given."""
        found = replace(size, **self.model_dump(exclude_none=True))
        if found.deter % found.blocks:
            raise ValueError(f"dynamics.deter: {found.deter} units cannot be divided into {found.blocks} equal blocks")
        return found

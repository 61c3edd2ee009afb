"""Settings that algorithms with a world model share, and the sizes of their networks by name.

`xs` to `l` are the sizes of the first edition of DreamerV3 (arXiv:2301.04104v1).
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from rl4sys.dynamics import DYNAMICS, DynamicsConfig, ModelSize, RSSMConfig, WorldModel
from rl4sys.engine import ALGORITHMS, AlgorithmConfig, Problem
from rl4sys.networks import OptimizerSettings
from rl4sys.networks.two_hot import TwoHot
from rl4sys.policy import output_size
from rl4sys.replay import Ratio

SizeName: TypeAlias = Literal["pico", "nano", "1m", "xs", "s", "m", "l"]

SIZES: dict[SizeName, ModelSize] = {
    "pico": ModelSize(deter=128, hidden=64, groups=8, classes=8, units=64, layers=1, depth=4, lr=1e-3),
    "nano": ModelSize(deter=256, hidden=128, groups=16, classes=8, units=128, layers=2, depth=8, lr=6e-4),
    "1m": ModelSize(deter=512, hidden=64, groups=32, classes=4, units=64, layers=3, depth=4, lr=4e-4),
    "xs": ModelSize(deter=256, hidden=256, groups=32, classes=32, units=256, layers=1, depth=24, lr=1e-4),
    "s": ModelSize(deter=512, hidden=512, groups=32, classes=32, units=512, layers=2, depth=32, lr=1e-4),
    "m": ModelSize(deter=1024, hidden=640, groups=32, classes=32, units=640, layers=3, depth=48, lr=4e-5),
    "l": ModelSize(deter=2048, hidden=768, groups=32, classes=32, units=768, layers=4, depth=64, lr=4e-5),
}


class WorldModelConfig(AlgorithmConfig):
    """Settings of algorithms that learn a world model from sequences."""

    size: SizeName = "1m"
    """Size of all networks. Larger ones predict better after more data, and take longer per decision and update."""
    dynamics: Annotated[DynamicsConfig, DYNAMICS] = RSSMConfig()
    """The model: rssm, whose parts may have other sizes than those of `size`."""
    lr: float | None = Field(None, gt=0)
    """Learning rate; one that suits the size if not given."""
    batch_size: int = Field(16, ge=1)
    """Sequences per update."""
    sequence_length: int = Field(64, ge=2)
    """Rows of a sequence. Longer ones train a longer memory, and take longer."""
    context: int = Field(1, ge=1)
    """Rows at the start of a sequence that only let the model find its state, unless an episode begins there."""
    updates_per_step: float = Field(0.5, gt=0)
    """Updates for each environment step. More learn more from the same data, and take time."""
    train_frequency: int = Field(1, ge=1)
    """Environment steps (over all environments) between two rounds of updates."""
    learning_starts: int = Field(1_000, ge=0)
    """Steps before learning starts; no updates are due for them."""
    free_nats: float = Field(1.0, ge=0)
    """Divergence between inferred and predicted states that costs nothing."""
    dynamics_scale: float = Field(1.0, ge=0)
    """How strongly predicted states are drawn to inferred ones."""
    representation_scale: float = Field(0.1, ge=0)
    """How strongly inferred states are drawn to predicted ones."""
    adaptive_clip: float | None = Field(0.3, gt=0)
    """The gradient of each tensor is scaled down to this share of the tensor's norm; null leaves it as it is."""
    warmup_steps: int = Field(1_000, ge=0)
    """Updates over which the learning rate grows from zero."""

    buffers = ("sequences",)
    own_networks = "algorithm.size"

    @model_validator(mode="after")
    def _check_dynamics(self) -> Self:
        if not isinstance(self.dynamics, RSSMConfig):
            raise ValueError(
                f"dynamics is of type {DYNAMICS.name_of(self.dynamics)}, which predicts single steps; "
                f"{ALGORITHMS.name_of(self)} learns an rssm. Leave dynamics out, or use algorithm.name=pets"
            )
        self.dynamics.sized(SIZES[self.size])
        return self

    @property
    def model_size(self) -> ModelSize:
        """The sizes of all networks."""
        size = SIZES[self.size]
        return self.dynamics.sized(size) if isinstance(self.dynamics, RSSMConfig) else size

    def pace(self, buffer_size: int) -> Ratio:
        """A fixed number of updates for each step."""
        return Ratio(self.updates_per_step, self.learning_starts, self.batch_size)

    def steps_between_updates(self, buffer_size: int) -> int:
        """One round of updates."""
        return self.train_frequency

    def update_size(self) -> int:
        """Rows in one gradient step."""
        return self.batch_size * self.sequence_length

    @property
    def window(self) -> int:
        """Rows of a sequence."""
        return self.sequence_length

    def world_model(self, problem: Problem, discount: float, two_hot: TwoHot | None) -> WorldModel:
        """The model of one problem; see `WorldModel`."""
        scales = self.free_nats, self.dynamics_scale, self.representation_scale
        return WorldModel(problem.observation, output_size(problem.action), self.model_size, *scales, discount, two_hot)

    def optimizer_settings(self) -> OptimizerSettings:
        """How all networks are trained."""
        return OptimizerSettings(
            self.lr or SIZES[self.size].lr,
            rule="laprop",
            adaptive_clip=self.adaptive_clip,
            warmup_steps=self.warmup_steps,
        )

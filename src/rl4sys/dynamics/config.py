"""Dynamics models by name: a config writes the ops of a model into programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from rl4sys.config import Config, Registry
from rl4sys.networks import Activation, MlpConfig
from rl4sys.policy import ProgramBuilder
from rl4sys.suggestions import nearest


class DynamicsConfig(Config):
    """Predicts what follows from an action."""


def _usual(settings: Mapping[str, Any]) -> str:
    """The model that is meant where no type is given: an ensemble, unless these are settings of an rssm."""
    own, others = (DYNAMICS.type(name).model_fields for name in ("rssm", "ensemble"))
    # A misspelt key counts, so that the error names what was meant.
    means_own = any(nearest(key, own) is not None for key in settings.keys() - others.keys())
    return "rssm" if means_own else "ensemble"


DYNAMICS: Registry[DynamicsConfig] = Registry(
    "dynamics model", DynamicsConfig, key="type", default="ensemble", choose=_usual
)
register_dynamics = DYNAMICS.register


class OneStepConfig(DynamicsConfig):
    """Predicts the change of the observation and the reward of one step, both standardized, from a flat observation."""

    hidden_dims: tuple[Annotated[int, Field(ge=1)], ...] = (64, 64)
    """Units of each hidden layer. More are more expressive, and slow down every planned decision."""
    activation: Activation = "tanh"
    """The activation after each layer."""

    @property
    def members(self) -> int:
        """Networks with weights of their own."""
        return 1

    @property
    def std_bounds(self) -> tuple[float, float] | None:
        """The least and the greatest standard deviation of a prediction; None if it predicts none."""
        return None

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """The layers before the predictions; tensor names are led by `name`."""
        network = MlpConfig(hidden_dims=self.hidden_dims, activation=self.activation)
        return network.body(builder, features, name)


@register_dynamics("deterministic")
class DeterministicConfig(OneStepConfig):
    """One network that predicts means, trained on squared errors: the cheapest, and blind to its own errors."""


@register_dynamics("gaussian")
class GaussianConfig(OneStepConfig):
    """One network that predicts means and standard deviations, trained on the log-likelihood.

    It knows the noise of the environment, not what it has not seen.
    """

    min_std: float = Field(0.002, gt=0)
    """The least standard deviation of a prediction, in standard deviations of the data. Too little makes training
    unstable where the environment is deterministic."""
    max_std: float = Field(2.0, gt=0)
    """The greatest one. It bounds what predictions far from the data can do."""
    beta: float = Field(0.5, ge=0, le=1)
    """Weight of each error by this power of its predicted variance (arXiv:2203.09168): 0 is the plain likelihood, which
    neglects what is predicted badly; 1 fits means as squared errors do."""

    @model_validator(mode="after")
    def _check(self) -> GaussianConfig:
        if self.min_std >= self.max_std:
            raise ValueError(f"min_std is {self.min_std} and max_std is {self.max_std}; expected min_std < max_std")
        return self

    @property
    def std_bounds(self) -> tuple[float, float] | None:
        """Both bounds."""
        return self.min_std, self.max_std


@register_dynamics("ensemble")
class EnsembleConfig(GaussianConfig):
    """Several such networks, each trained on batches of its own: where they disagree, there is too little data."""

    size: int = Field(5, ge=2)
    """Members. More estimate the uncertainty better; every update and every decision takes as much longer."""
    member: Literal["gaussian", "deterministic"] = "gaussian"
    """The kind of each member. Deterministic ones show their disagreement only."""

    @property
    def members(self) -> int:
        """The size of the ensemble."""
        return self.size

    @property
    def std_bounds(self) -> tuple[float, float] | None:
        """Those of Gaussian members."""
        return super().std_bounds if self.member == "gaussian" else None

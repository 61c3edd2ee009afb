"""Networks over several named arrays, each with an encoder of its own."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from rl4sys.networks.config import (
    NETWORKS,
    Activation,
    MlpConfig,
    NetworkConfig,
    UnsuitableNetwork,
    register_network,
    require_encoder,
)
from rl4sys.policy import ProgramBuilder


@register_network("mixed")
class MixedConfig(NetworkConfig):
    """One encoder for each named array, then fully connected layers over all of their results."""

    encoders: dict[str, Annotated[NetworkConfig, NETWORKS]] = Field({}, min_length=1)
    """A network for each array by name, such as `{pixels: {type: cnn}, state: {type: mlp}}`. Arrays that are not named
    are used as they are."""
    hidden_dims: tuple[Annotated[int, Field(ge=1)], ...] = (64,)
    """Units of each fully connected layer that follows."""
    activation: Activation = "tanh"
    """The activation after each of these layers."""

    @model_validator(mode="after")
    def _check_encoders(self) -> Self:
        for name, encoder in self.encoders.items():
            require_encoder(encoder, f"encoders.{name}")
        return self

    @property
    def has_memory(self) -> bool:
        """Whether one of the encoders has."""
        return any(encoder.has_memory for encoder in self.encoders.values())

    def features(self, builder: ProgramBuilder, name: str, *, standardize: bool) -> str:
        """The results of all encoders and the other arrays, concatenated."""
        seen = builder.observations()
        names = [spec.name for spec in seen]
        if unknown := sorted(self.encoders.keys() - set(names)):
            raise UnsuitableNetwork(
                f"network.{name}.encoders names {', '.join(unknown)}, and the observation has {', '.join(names)}. "
                f"Name arrays of the observation."
            )
        parts = []
        for spec in seen:
            encoder = self.encoders.get(spec.name)
            if encoder is None:
                parts.append(builder.flat(builder.numbers(spec, standardize=standardize)))
                continue
            with builder.seeing(spec.name):
                register = encoder.features(builder, f"{name}.{spec.name}", standardize=standardize)
            parts.append(encoder.body(builder, register, f"{name}.{spec.name}"))
        return builder.joined(parts)

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """The fully connected layers."""
        return MlpConfig(hidden_dims=self.hidden_dims, activation=self.activation).body(builder, features, name)

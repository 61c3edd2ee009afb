"""Recurrent networks: layers, then memory that is carried from decision to decision."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Self

from pydantic import Field, model_validator

from rl4sys.networks.config import (
    NETWORKS,
    Activation,
    MlpConfig,
    NetworkConfig,
    register_network,
    require_encoder,
)
from rl4sys.policy import ProgramBuilder


class MemoryConfig(NetworkConfig):
    """What all networks with memory have: an encoder and fully connected layers before it."""

    encoder: Annotated[NetworkConfig, NETWORKS] | None = None
    """A network before everything else, such as `{type: cnn}` for images; observations as they are if not given."""
    hidden_dims: tuple[Annotated[int, Field(ge=1)], ...] = (64,)
    """Units of each fully connected layer before the memory."""
    activation: Activation = "tanh"
    """The activation after each of these layers."""
    previous_action: bool = False
    """Whether the network also sees the action before, as it was taken: what an observation means may depend on it."""

    @model_validator(mode="after")
    def _check_encoder(self) -> Self:
        if self.encoder is not None:
            require_encoder(self.encoder, "encoder")
        return self

    @property
    def reads_previous_action(self) -> bool:
        """If it is set."""
        return self.previous_action

    @property
    def has_memory(self) -> bool:
        """Always."""
        return True

    def features(self, builder: ProgramBuilder, name: str, *, standardize: bool) -> str:
        """Those of the encoder, if there is one."""
        if self.encoder is None:
            return super().features(builder, name, standardize=standardize)
        return self.encoder.features(builder, f"{name}.encoder", standardize=standardize)

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """The encoder's layers, our own, then the memory."""
        if self.encoder is not None:
            features = self.encoder.body(builder, features, f"{name}.encoder")
        layers = MlpConfig(hidden_dims=self.hidden_dims, activation=self.activation)
        return self.memory(builder, layers.body(builder, features, name), name)

    @abstractmethod
    def memory(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """Add the ops with memory; returns the register of their result."""


class RecurrentConfig(MemoryConfig):
    """Settings of recurrent layers."""

    units: int = Field(64, ge=1)
    """Numbers that each recurrent layer remembers. More remember more, and take longer per decision and update."""
    layers: int = Field(1, ge=1, le=8)
    """Recurrent layers, each reading the one before."""


@register_network("lstm")
class LstmConfig(RecurrentConfig):
    """Long short-term memory (doi:10.1162/neco.1997.9.8.1735): the memory to start with, and the fastest to train."""

    def memory(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """One LSTM for each layer."""
        for number in range(self.layers):
            features = builder.lstm(features, self.units, f"{name}.lstm{number}")
        return features


@register_network("gru")
class GruConfig(RecurrentConfig):
    """Gated recurrent units (arXiv:1406.1078): a smaller carry than an LSTM's, and slower to train on a CPU."""

    def memory(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """One GRU for each layer."""
        for number in range(self.layers):
            features = builder.gru(features, self.units, f"{name}.gru{number}")
        return features

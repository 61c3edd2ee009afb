"""Networks by name: a config writes the ops of a network's body into a program."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from rl4sys.config import Config, ConfigError, Registry
from rl4sys.policy import ProgramBuilder

Activation: TypeAlias = Literal["tanh", "relu", "silu", "gelu", "elu", "leaky_relu", "sigmoid", "softplus"]


class UnsuitableNetwork(ValueError):
    """A network does not fit the observation, or the algorithm that would train it."""


class NetworkConfig(Config):
    """The layers between the observation and the last, linear layer: `features`, then `body`.

    Between the two an algorithm may add inputs, such as the action of a critic.
    """

    @property
    def has_memory(self) -> bool:
        """Whether it carries memory from decision to decision."""
        return False

    @property
    def reads_previous_action(self) -> bool:
        """Whether the previous action is added to its features."""
        return False

    @property
    def scores_candidates(self) -> bool:
        """Whether its body is a row for each candidate, and not one vector."""
        return False

    def features(self, builder: ProgramBuilder, name: str, *, standardize: bool) -> str:
        """One flat vector computed from the observations, before anything is added.

        Networks that need them in their own shapes override it; the names of tensors are led by `name`.
        """
        return builder.features(standardize=standardize)

    @abstractmethod
    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """Add ops over the register `features`, tensor names led by `name`; returns the body's register."""

    def scores(self, builder: ProgramBuilder, body: str, size: int, name: str) -> str:
        """The last layer of an actor: so many outputs, one for each choice or number of an action."""
        return builder.linear(body, size, name)

    def summary(self, builder: ProgramBuilder, body: str, name: str) -> str:
        """The body as one vector, for a layer that predicts one value."""
        return body


def require_encoder(encoder: NetworkConfig, place: str) -> None:
    """Refuse an encoder that only whole networks can be: one that reads the previous action, or scores candidates."""
    if encoder.reads_previous_action:
        raise ValueError(f"{place}.previous_action: set it for the network around the encoder, which reads the action")
    if encoder.scores_candidates:
        raise ValueError(f"{place}.type: candidates is a whole network, which scores rows; choose another encoder")


NETWORKS: Registry[NetworkConfig] = Registry(
    "network",
    NetworkConfig,
    key="type",
    default="mlp",
)
register_network = NETWORKS.register


@register_network("mlp")
class MlpConfig(NetworkConfig):
    """A stack of fully connected layers."""

    hidden_dims: tuple[Annotated[int, Field(ge=1)], ...] = (64, 64)
    """Units of each hidden layer. More are more expressive and take longer per decision and update."""
    activation: Activation = "tanh"
    """The activation after each layer."""
    layer_norm: bool = False
    """Normalise each layer before its activation. Steadier with large or drifting inputs, a little slower."""

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """Linear, optional norm, activation; once per hidden layer."""
        register = features
        for number, width in enumerate(self.hidden_dims):
            register = builder.linear(register, width, f"{name}.{number}")
            if self.layer_norm:
                register = builder.layer_norm(register, f"{name}.{number}.norm")
            register = builder.activation(register, self.activation)
        return register


class NetworksConfig(Config):
    """The networks of an algorithm."""

    actor: Annotated[NetworkConfig, NETWORKS] = MlpConfig()
    """The network that acts. Value-based algorithms train it as their value network."""
    critic: Annotated[NetworkConfig, NETWORKS] = MlpConfig()
    """The network of the critic, if the algorithm has one. That of the actor if not given and the actor has memory or
    scores candidates."""

    @model_validator(mode="before")
    @classmethod
    def _critic_is_like_the_actor(cls, values: Any) -> Any:
        if not isinstance(values, dict) or "critic" in values or "actor" not in values:
            return values
        actor = values["actor"]
        if isinstance(actor, dict):
            try:
                actor = NETWORKS.parse(actor)
            except ConfigError:
                # Validation reports it, with its place.
                return values
        if isinstance(actor, NetworkConfig) and (actor.has_memory or actor.scores_candidates):
            return {**values, "critic": actor}
        return values

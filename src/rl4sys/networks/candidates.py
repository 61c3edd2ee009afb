"""Networks that score candidates: one network for all rows, whose number differs from decision to decision."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from rl4sys.networks.config import MlpConfig, NetworkConfig, UnsuitableNetwork, register_network
from rl4sys.policy import CANDIDATES, COUNT, ProgramBuilder


@register_network("candidates")
class CandidatesConfig(NetworkConfig):
    """The same fully connected layers for every candidate, each with the context beside it; one score for each.

    Permuting the candidates permutes their scores. A critic pools the results over all candidates: their mean, their
    maximum, and the logarithm of their number.
    """

    hidden_dims: tuple[Annotated[int, Field(ge=1)], ...] = Field((32, 32), min_length=1)
    """Units of each layer that all candidates share. More are more expressive; each costs once for every candidate."""
    activation: Literal["tanh", "relu", "silu", "gelu", "elu", "sigmoid", "softplus"] = "tanh"
    """The activation after each layer."""
    pooled_dims: tuple[Annotated[int, Field(ge=1)], ...] = (32,)
    """Units of each layer after the pooling, in a network that predicts one value. They cost once for a decision."""

    @property
    def scores_candidates(self) -> bool:
        """It does."""
        return True

    def features(self, builder: ProgramBuilder, name: str, *, standardize: bool) -> str:
        """The first layer, over each candidate and all other observations as its context."""
        names = [spec.name for spec in builder.observations()]
        if not {CANDIDATES, COUNT} <= set(names):
            raise UnsuitableNetwork(
                f"network.{name}.type is candidates, and the observation has {', '.join(names)}; expected "
                f"'{CANDIDATES}' and their number, '{COUNT}'. Offer candidates, or choose another network."
            )
        if standardize:
            raise UnsuitableNetwork(
                f"network.{name}.type is candidates, whose rows are not standardized. Scale the features where they "
                f"are made, and leave normalize_obs off."
            )
        context = _context(builder)
        return builder.candidate_linear(
            CANDIDATES, self.hidden_dims[0], f"{name}.0", context=context, activation=self.activation
        )

    def body(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """The other layers that all candidates share: rows [N, units]."""
        register = features
        for number, width in enumerate(self.hidden_dims[1:], start=1):
            register = builder.candidate_linear(register, width, f"{name}.{number}", activation=self.activation)
        return register

    def scores(self, builder: ProgramBuilder, body: str, size: int, name: str) -> str:
        """One score for each candidate."""
        most = builder.shape(body)[0]
        if size != most:
            raise UnsuitableNetwork(
                f"There are up to {most} candidates and {size} choices. Let the action be one discrete choice among "
                f"{most}, or choose another network than candidates."
            )
        return builder.flat(builder.candidate_linear(body, 1, name))

    def summary(self, builder: ProgramBuilder, body: str, name: str) -> str:
        """All candidates and the context as one vector."""
        pooled, context = builder.candidate_pool(body), _context(builder)
        joined = builder.joined([pooled] if context is None else [pooled, context])
        layers = MlpConfig(hidden_dims=self.pooled_dims, activation=self.activation)
        return layers.body(builder, joined, f"{name}.pooled")


def _context(builder: ProgramBuilder) -> str | None:
    """Every observation that is neither the candidates nor their number, as one vector."""
    others = [spec for spec in builder.observations() if spec.name not in (CANDIDATES, COUNT)]
    parts = [builder.flat(builder.numbers(spec, standardize=False)) for spec in others]
    return builder.joined(parts) if parts else None

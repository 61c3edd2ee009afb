"""Transformers as memory: each decision attends to the decisions before it."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from rl4sys.networks.config import register_network
from rl4sys.networks.recurrent import MemoryConfig
from rl4sys.policy import ProgramBuilder

MAX_CARRY_BYTES = 1 << 20
_FLOAT_BYTES = 4
_KEEP = -2.0
"""Bias of the update gates: at the start a layer changes little of what passes through it (arXiv:1910.06764)."""


@register_network("transformer")
class TransformerConfig(MemoryConfig):
    """A transformer with norms before each part and gates instead of sums, like GTrXL (arXiv:1910.06764).

    Keys and values of the last decisions are carried, so its memory ends after `window` decisions in each layer.
    """

    units: int = Field(64, ge=1)
    """Width of all layers. More can distinguish more, and take longer per decision and update."""
    heads: int = Field(4, ge=1)
    """Parts in which each layer attends; they divide `units`."""
    layers: int = Field(2, ge=1, le=32)
    """Layers of attention, each followed by two fully connected ones of which the first is 4 · `units` wide."""
    window: int = Field(64, ge=2)
    """Decisions that each layer attends to, the present one included. More remember longer; the carry grows with it."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.units % self.heads:
            raise ValueError(f"heads: {self.heads} do not divide {self.units} units equally")
        size = _FLOAT_BYTES * self.layers * (2 * self.window * self.units + 1)
        if size > MAX_CARRY_BYTES:
            raise ValueError(
                f"window: {self.layers} layers of {self.window} decisions × {self.units} units make a carry of "
                f"{size / MAX_CARRY_BYTES:.1f} MB, which each segment holds; at most 1 MB is allowed. "
                f"Lower window, units or layers"
            )
        return self

    def memory(self, builder: ProgramBuilder, features: str, name: str) -> str:
        """Layers of gated attention and gated fully connected layers, and a norm at the end."""
        register = builder.linear(features, self.units, f"{name}.embed")
        for number in range(self.layers):
            layer = f"{name}.layer{number}"
            attended = self._attention(builder, builder.layer_norm(register, f"{layer}.attention_norm"), layer)
            register = self._gated(builder, register, attended, f"{layer}.attention_gate")
            wide = builder.layer_norm(register, f"{layer}.wide_norm")
            wide = builder.activation(builder.linear(wide, 4 * self.units, f"{layer}.wide"), "relu")
            narrow = builder.linear(wide, self.units, f"{layer}.narrow")
            register = self._gated(builder, register, narrow, f"{layer}.wide_gate")
        return builder.layer_norm(register, f"{name}.norm")

    def _attention(self, builder: ProgramBuilder, register: str, layer: str) -> str:
        query, key, value = (
            builder.linear(register, self.units, f"{layer}.{part}") for part in ("query", "key", "value")
        )
        found = builder.attention(query, key, value, heads=self.heads, window=self.window, name=f"{layer}.attention")
        return builder.linear(found, self.units, f"{layer}.attended")

    def _gated(self, builder: ProgramBuilder, state: str, update: str, name: str) -> str:
        """The state, changed as far as a gate lets the update in."""
        gates = builder.linear(builder.joined([builder.activation(update, "relu"), state]), 3 * self.units, name)
        return builder.gate(gates, state, update_bias=_KEEP)

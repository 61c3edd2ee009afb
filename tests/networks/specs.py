"""Small policies for tests."""

from rl4sys.experience import ArraySpec
from rl4sys.policy import DiscreteAction, Head, PolicySpec, ProgramBuilder


def mlp(*, layer_norm: bool = False) -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("state", "float32", (3,)),))
    register = builder.linear(builder.features(standardize=True), 5, "actor.0")
    if layer_norm:
        register = builder.layer_norm(register, "actor.0.norm")
    logits = builder.linear(builder.activation(register, "tanh"), 4, "actor.action")
    return PolicySpec(DiscreteAction(4), builder.program(), Head("categorical", (logits,)))


def recurrent() -> PolicySpec:
    builder = ProgramBuilder((ArraySpec("state", "float32", (3,)),))
    hidden = builder.lstm(builder.gru("state", 4, "first"), 5, "second")
    logits = builder.linear(hidden, 2, "actor.action")
    return PolicySpec(DiscreteAction(2), builder.program(), Head("categorical", (logits,)))

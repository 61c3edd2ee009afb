"""The policies of an actor that sees the states of a world model."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rl4sys.dynamics import Forecast, ModelSize, NormedMlp, WorldModel, evidence
from rl4sys.dynamics.encoder import images_and_vectors, require_sizes
from rl4sys.dynamics.latents import UNIMIX
from rl4sys.dynamics.rssm import PREVIOUS_ACTION
from rl4sys.engine import Policies, Problem
from rl4sys.experience import ArraySpec, Sequences
from rl4sys.networks import TensorMap, UnsuitableNetwork
from rl4sys.networks.two_hot import TwoHot
from rl4sys.policy import ActionSpec, DiscreteAction, Head, PolicySpec, ProgramBuilder, output_size

_NEXT_ACTION = f"{PREVIOUS_ACTION}.next"


def require_suitable(problem: Problem, algorithm: str) -> None:
    """Refuse what a world model cannot predict, before anything starts."""
    require_sizes(problem.observation)
    if problem.mask is not None or problem.count is not None:
        found = "an action mask" if problem.mask is not None else "candidates"
        raise UnsuitableNetwork(
            f"{algorithm} cannot predict which actions are allowed, and this environment has {found}. "
            f"Use algorithm.name=ppo or dqn."
        )
    if not isinstance(problem.action, DiscreteAction):
        problem.bounded_action(algorithm)


def world_policies(problem: Problem, model: WorldModel, actor: NormedMlp) -> Policies:
    """Encoder, one step of the filter, actor: exploring draws latents and actions, exploiting takes the best."""
    return Policies(*(_policy(problem, model, actor, draw=draw) for draw in (True, False)))


def _policy(problem: Problem, model: WorldModel, actor: NormedMlp, *, draw: bool) -> PolicySpec:
    builder = ProgramBuilder(problem.observation)
    state = model.rssm.write_filter(builder, model.encoder.write(builder), draw=draw)
    hidden = actor.write(builder, builder.joined(state))
    builder.remember(PREVIOUS_ACTION, _NEXT_ACTION)
    action, settings = problem.action, {"action": _NEXT_ACTION}
    if isinstance(action, DiscreteAction):
        logits = builder.linear(hidden, action.n, "actor.action")
        mixed = builder.softmax(logits)
        mixed = builder.op("scale", (mixed,), (action.n,), factor=1.0 - UNIMIX, offset=UNIMIX / action.n)
        head = Head("categorical" if draw else "deterministic", (builder.log(mixed),), settings=settings)
    else:
        box = problem.bounded_action("Dreamer")
        mean = builder.activation(builder.linear(hidden, box.size, "actor.mean"), "tanh")
        spread = builder.op(
            "scale", (builder.linear(hidden, box.size, "actor.std"),), (box.size,), factor=1.0, offset=2.0
        )
        std = builder.op("scale", (builder.activation(spread, "sigmoid"),), (box.size,), factor=0.9, offset=0.1)
        if draw:
            noise = builder.op("multiply", (std, builder.chance("actor.noise", box.size, "normal")), (box.size,))
            mean = builder.op("add", (mean, noise), (box.size,))
        head = Head("deterministic", (mean,), settings={"squash": "clip", **settings})
    return PolicySpec(action, builder.program(), head)


def world_weights(
    size: ModelSize,
    observation: tuple[ArraySpec, ...],
    action: ActionSpec,
    two_hot: TwoHot | None,
    heads: Sequence[int],
) -> int:
    """Weights of a world model of this size, and of perceptrons over its states with so many outputs."""
    model = WorldModel(observation, output_size(action), size, 1.0, 1.0, 1.0, 1.0, two_hot)
    builder = ProgramBuilder(observation)
    model.rssm.write_filter(builder, model.encoder.write(builder), draw=False)
    builder.remember(PREVIOUS_ACTION, PREVIOUS_ACTION)
    perceptrons = [NormedMlp("head", model.rssm.feature, size.units, size.layers, outputs) for outputs in heads]
    tensors = (*builder.program().tensors, *model.tensors(), *(t for mlp in perceptrons for t in mlp.tensors()))
    return sum(math.prod(tensor.shape) for tensor in tensors)


def world_forecast(
    model: WorldModel, views: TensorMap, problem: Problem, sequences: Sequences, context: int
) -> Forecast:
    """What a world model predicts after the first `context` rows of sequences; refuses images."""
    images, _ = images_and_vectors(problem.observation)
    if images:
        raise UnsuitableNetwork(
            f"The observation '{images[0].name}' is an image; only predictions of numbers are compared."
        )
    return model.forecast(views, evidence(sequences, problem.action, context, problem.device), context)

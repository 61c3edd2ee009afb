"""The programs of an actor that explores by its own distribution, and of a critic that values what is observed."""

from __future__ import annotations

from rl4sys.algorithms.problem import Policies, Problem, without_memory
from rl4sys.policy import BoxAction, Head, PolicySpec, Program, ProgramBuilder, output_size


def actor_and_critic(problem: Problem) -> tuple[Policies, Program, Program]:
    """The two policies over one actor program, that program, and the critic's."""
    builder = ProgramBuilder(problem.observation)
    features = problem.networks.actor.features(builder, "actor", standardize=problem.standardize)
    body = problem.networks.actor.body(builder, features, "actor")
    output = builder.linear(body, output_size(problem.action), "actor.action")
    if isinstance(problem.action, BoxAction):
        head = Head("gaussian", (output,), (builder.tensor("log_std", problem.action.size),))
    else:
        head = Head("categorical", (output,), mask=problem.mask)
    actor = builder.program()
    greedy = Head("deterministic", head.inputs, mask=head.mask)
    policies = Policies(PolicySpec(problem.action, actor, head), PolicySpec(problem.action, actor, greedy))

    builder = ProgramBuilder(problem.observation)
    features = problem.networks.critic.features(builder, "critic", standardize=problem.standardize)
    builder.linear(problem.networks.critic.body(builder, features, "critic"), 1, "critic.value")
    return policies, without_memory(actor), without_memory(builder.program())

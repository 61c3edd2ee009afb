"""The deterministic actor of DDPG and TD3, and the noise that it explores with."""

from __future__ import annotations

from dataclasses import replace

from rl4sys.engine import Policies, Problem, TrainState
from rl4sys.networks import Network, OptimizerSettings
from rl4sys.policy import BoxAction, Head, Memory, PolicySpec, Program, ProgramBuilder
from rl4sys.policy.policy_spec import Setting

_STD, _EPSILON, _NOISE = "exploration.std", "exploration.epsilon", "exploration.noise"


def deterministic_policies(problem: Problem, action: BoxAction, theta: float | None) -> tuple[Policies, Program]:
    """The two policies, and the program to train. With θ the noise is an Ornstein–Uhlenbeck process, kept as memory."""
    builder = ProgramBuilder(problem.observation)
    mean = builder.linear(problem.actor_body(builder), action.size, "actor.action")
    builder.tensor(_STD, action.size)
    builder.tensor(_EPSILON, 1)
    program = exploring = builder.program()
    inputs: tuple[str, ...] = (mean,)
    settings: dict[str, Setting] = {}
    if theta is not None:
        exploring = replace(program, carry=(Memory(_NOISE, (action.size,), f"{_NOISE}.next"),))
        inputs, settings = (mean, _NOISE), {"theta": theta, "next": f"{_NOISE}.next"}
    explore = Head("perturbed", inputs, (_STD, _EPSILON), settings=settings)
    exploit = Head("deterministic", (mean,), settings={"squash": "tanh"})
    return Policies(PolicySpec(action, exploring, explore), PolicySpec(action, program, exploit)), program


def deterministic_actor(
    state: TrainState,
    program: Program,
    settings: OptimizerSettings,
    std: float,
    learning_starts: int,
    *,
    target: bool = True,
) -> Network:
    """The actor, by default with its target network; noise of deviation `std`, random actions until learning starts."""
    outputs = state.policies.exploit.head.inputs
    actor = state.network("actor", program, outputs, settings, frozen=(_STD, _EPSILON), target=target, fused=True)
    state.schedule(_STD, lambda progress: state.scheduled("exploration_std", std))
    state.schedule(_EPSILON, lambda progress: float(progress.steps <= learning_starts))
    return actor

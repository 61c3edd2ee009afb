"""How well a world model predicts an environment that it saw random actions in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch

from rl4sys.algorithms import Dreamer, DreamerConfig, Problem
from rl4sys.dynamics import Evidence, State, evidence
from rl4sys.experience import ArraySpec, Ending, Segment, Sequences, StreamKey
from rl4sys.networks import NetworksConfig
from rl4sys.networks.two_hot import symlog
from rl4sys.policy import BoxAction, DiscreteAction
from rl4sys.replay import BUFFERS, Ratio
from rl4sys.seeding import Seeds

_ROWS, _LENGTH, _START, _AHEAD, _DRAWS = 64, 48, 20, 15, 8


class Quality(NamedTuple):
    """Predictions on steps that were not trained on."""

    reward_r2: float
    open_loop: float
    """Squared error of 15 steps without observations, as a share of that of the last observation."""
    return_correlation: float
    """Of imagined with real returns over these steps."""
    continue_auc: float
    """Of the continue head, whose prediction is the mean over draws of the latents; NaN if no episode terminated."""


def trained(name: str, steps: int, updates: int, seed: int = 0, **config: Any) -> Dreamer:
    """A world model after so many updates on so many random steps; actor and critic learn little beside it."""
    space = gymnasium.make(name)
    settings = {"size": "pico", "imag_last": 2, "warmup_steps": 100} | config
    agent = DreamerConfig(**settings).build(_problem(space, seed))
    for batch in random_batches(space, steps, updates, seed, agent.config.batch_size, agent.config.sequence_length):
        agent.update(batch)
    return agent


def quality(agent: Dreamer, name: str, seed: int = 1) -> Quality:
    """Measured on episodes of another seed."""
    environment = gymnasium.make(name)
    (batch,) = random_batches(environment, 2_000, 1, seed, _ROWS, _LENGTH)
    data = evidence(batch, agent.problem.action, 5, torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        uniform = torch.rand(_ROWS, _LENGTH, agent.model.rssm.groups, generator=generator)
        state = agent.model.understand(agent.views, data, uniform).state
        feature = state.feature().flatten(0, 1)
        reward = agent.two_hot.predict(agent.model.reward(agent.views, feature)).view(_ROWS, _LENGTH)
        open_loop, correlation = _open_loop(agent, data, state, generator)
        continues = _continues(agent, data, generator)
    known = data.weight.bool()
    errors = (reward - data.reward)[known].square().mean() / data.reward[known].var().clamp(min=1e-12)
    return Quality(1.0 - errors.item(), open_loop, correlation, _auc(continues[known], data.continues[known]))


def _open_loop(agent: Dreamer, data: Evidence, state: State, generator: torch.Generator) -> tuple[float, float]:
    within = ~data.is_first[:, _START + 1 : _START + _AHEAD + 1].any(1)
    seen = symlog(data.observation["observation"])
    now = State(state.deter[:, _START], state.stoch[:, _START])
    error, copied = 0.0, 0.0
    imagined, real = torch.zeros(_ROWS), torch.zeros(_ROWS)
    for step in range(_START + 1, _START + _AHEAD + 1):
        uniform = torch.rand(_ROWS, agent.model.rssm.groups, generator=generator)
        now = agent.model.rssm.imagine(agent.views, now, data.previous_action[:, step], uniform)
        predicted = agent.model.decoder.vectors(agent.views, now.feature())
        error += (predicted - seen[:, step])[within].square().mean().item()
        copied += (seen[:, _START] - seen[:, step])[within].square().mean().item()
        imagined += agent.two_hot.predict(agent.model.reward(agent.views, now.feature()))
        real += data.reward[:, step]
    with np.errstate(invalid="ignore"):
        correlation = np.corrcoef(imagined[within].numpy(), real[within].numpy())[0, 1]
    return error / copied, float(correlation)


def _continues(agent: Dreamer, data: Evidence, generator: torch.Generator) -> torch.Tensor:
    """The predicted probability [B, L] that an episode continues: as in forecasts, the mean over several draws."""
    total = torch.zeros(_ROWS, _LENGTH)
    for _ in range(_DRAWS):
        uniform = torch.rand(_ROWS, _LENGTH, agent.model.rssm.groups, generator=generator)
        feature = agent.model.understand(agent.views, data, uniform).state.feature().flatten(0, 1)
        total += torch.sigmoid(agent.model.continues(agent.views, feature)).view(_ROWS, _LENGTH)
    return total / _DRAWS


def _auc(score: torch.Tensor, truth: torch.Tensor) -> float:
    """The probability that a step that continues has a higher score than one that does not; a tie counts as half."""
    positive, negative = score[truth > 0], score[truth == 0]
    if not len(negative):
        return float("nan")
    difference = positive[:, None] - negative[None]
    return ((difference > 0).double() + 0.5 * (difference == 0).double()).mean().item()


def _problem(environment: gymnasium.Env[Any, Any], seed: int) -> Problem:
    action = environment.action_space
    spec: Any = (
        DiscreteAction(int(action.n))
        if isinstance(action, gymnasium.spaces.Discrete)
        else BoxAction(tuple(action.low.tolist()), tuple(action.high.tolist()))
    )
    shape = environment.observation_space.shape
    assert shape is not None
    observation = (ArraySpec("observation", "float32", shape),)
    return Problem(observation, spec, NetworksConfig(), torch.device("cpu"), Seeds(seed))


def random_batches(
    environment: gymnasium.Env[Any, Any], steps: int, updates: int, seed: int, rows: int, length: int
) -> Iterator[Sequences]:
    """So many batches of `rows` sequences, from replay with so many random steps."""
    config = BUFFERS.type("sequences")(size=max(steps, rows * length))
    # A little more than is asked for: nothing is due for the steps before a sequence can be drawn.
    buffer = config.build(Ratio(updates / (steps - length - 500), 0, rows), np.random.default_rng(seed), length)
    for segment in _random_segments(environment, steps, seed):
        buffer.add(segment)
    batches = buffer.due()
    return (next(batches) for _ in range(updates))


def _random_segments(environment: gymnasium.Env[Any, Any], steps: int, seed: int) -> Iterator[Segment]:
    environment.action_space.seed(seed)
    taken = episode = 0
    while taken < steps:
        observation, _ = environment.reset(seed=seed if episode == 0 else None)
        seen, actions, rewards, ending = [observation], [], [], Ending.CONTINUES
        while ending is Ending.CONTINUES and taken < steps:
            actions.append(environment.action_space.sample())
            observation, reward, terminated, truncated, _ = environment.step(actions[-1])
            seen.append(observation)
            rewards.append(reward)
            taken += 1
            ending = Ending.TERMINATED if terminated else Ending.TRUNCATED if truncated else Ending.CONTINUES
        columns = {"observation": np.array(seen, np.float32)}, np.array(actions), np.array(rewards, np.float32)
        yield Segment(StreamKey("test", "agent", 0), episode, 0, 0, ending, *columns, {}, {})
        episode += 1

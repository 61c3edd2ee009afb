"""DQN and SAC with networks that have memory, from sequences of replay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from rl4sys.algorithms import DQN, DQNConfig, SACConfig
from rl4sys.config import ConfigError
from rl4sys.engine import Algorithm, AlgorithmConfig, TensorStreams
from rl4sys.experience import Ending
from rl4sys.experiments import load_experiment
from rl4sys.experiments.preflight import check_combination
from rl4sys.networks import NETWORKS, NetworkConfig, NetworksConfig
from rl4sys.policy import ActionSpec
from rl4sys.replay import BUFFERS, Ratio, SequenceBuffer

from .problems import BOX, DISCRETE, problem, segment
from .training import DQN as SETTINGS
from .training import experiment, greedy_return

MEMORY = NETWORKS.parse({"type": "lstm", "units": 4, "hidden_dims": [4]})
PLAN: dict[str, Any] = {"burn_in": 2, "sequence_length": 5, "n_step": 2, "gamma": 0.9}


def drawn(
    config: AlgorithmConfig, action: ActionSpec, *, masked: bool = False, network: NetworkConfig = MEMORY
) -> tuple[Any, TensorStreams]:
    """An algorithm with memory, and a batch of sequences in which episodes end."""
    asked = replace(problem(action, masked=masked), networks=NetworksConfig(actor=network, critic=network))
    algorithm: Algorithm = config.build(asked)
    rng = np.random.default_rng(0)
    buffer = SequenceBuffer(200, Ratio(1, 0, 6), rng, config.sequence_plan().rows)
    for episode in range(12):
        ending = Ending.TERMINATED if episode % 2 else Ending.TRUNCATED
        buffer.add(segment(rng, asked, 3 + episode % 4, lane=episode % 2, episode=episode, ending=ending))
    return algorithm, algorithm.train_state.tensors(next(buffer.due()))


def q_at(dqn: DQN, batch: TensorStreams, stream: int, row: int, *, target: bool = False) -> torch.Tensor:
    """The values of one row, by running through the rows of its stream up to it, and no others."""
    network, before = dqn.network, batch.burn_in
    only = slice(stream, stream + 1)
    burnt = {name: array[only] for name, array in before.observation.items()}
    carry = network.carry_after(burnt, before.is_first[only], None, target=target)
    unroll = network.target_unroll if target else network.unroll
    shown = {name: array[only, : row + 1] for name, array in batch.observation.items()}
    return dqn.q_values(unroll(shown, batch.is_first[only, : row + 1], carry))[0, -1]


def plain_loss(dqn: DQN, batch: TensorStreams) -> torch.Tensor:
    """The loss of double Q-learning, row by row."""
    losses = []
    for stream, row in batch.learned.nonzero().tolist():
        with torch.no_grad():
            following = int(batch.next_row[stream, row])
            best = q_at(dqn, batch, stream, following).argmax()
            value = q_at(dqn, batch, stream, following, target=True)[best]
            target = batch.reward[stream, row] + batch.discount[stream, row] * value
        q = q_at(dqn, batch, stream, row)[batch.action[stream, row]]
        losses.append(F.smooth_l1_loss(q, target))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("dueling", [False, True])
def test_the_gradient_of_dqn_equals_that_of_a_loop_over_rows(dueling: bool) -> None:
    dqn, batch = drawn(DQNConfig(**PLAN, dueling=dueling), DISCRETE)
    assert batch.is_first[:, 1:].any()
    dqn.network.optimizer.differentiate(lambda rows: plain_loss(dqn, rows), batch)
    expected = dqn.network.optimizer.parameters.gradient.clone()
    metrics = dqn.update(batch).metrics
    torch.testing.assert_close(dqn.network.optimizer.parameters.gradient, expected, rtol=1e-4, atol=1e-6)
    assert torch.isfinite(metrics["loss"])


ALGORITHMS = {
    "dqn": (DQNConfig(**PLAN), DISCRETE),
    "sac": (SACConfig(**PLAN), BOX),
    "sac on choices": (SACConfig(**PLAN), DISCRETE),
}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_batch_in_parts_gives_the_same_update(name: str) -> None:
    config, action = ALGORITHMS[name]
    whole, parts = (drawn(config, action) for _ in range(2))
    parts[0].train_state.splitter.parts = 3
    for algorithm, batch in (whole, parts):
        algorithm.update(batch)
    for (_, one), (_, other) in zip(whole[0].train_state.parameters(), parts[0].train_state.parameters(), strict=True):
        torch.testing.assert_close(one.flat, other.flat, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["dqn", "sac on choices"])
def test_masks_go_with_memory(name: str) -> None:
    config, action = ALGORITHMS[name]
    algorithm, batch = drawn(config, action, masked=True)
    assert all(np.isfinite(float(value)) for value in algorithm.update(batch).metrics.values())


def test_the_memory_of_a_critic_does_not_depend_on_the_action_that_is_asked_for() -> None:
    sac, batch = drawn(SACConfig(**PLAN), BOX)
    other = batch.action.clone()
    other[:, 3] += 0.5
    before, after = (batch.outputs(sac.critics, action) for action in (batch.action, other))
    changed = (before != after).flatten(0, 1).any(0)
    assert changed.tolist() == [row == 3 for row in range(7)]


def recurrent(directory: Path, **changes: Any) -> Any:
    values: dict[str, Any] = {
        "algorithm": {"name": "dqn"},
        "environment": {"name": "CartPole-v1"},
        "network": {"actor": {"type": "lstm"}},
        "experiment": {"directory": str(directory)},
    }
    return load_experiment(values, changes)


def test_sequences_are_the_usual_buffer_with_memory(tmp_path: Path) -> None:
    assert BUFFERS.name_of(recurrent(tmp_path).buffer) == "sequences"
    assert BUFFERS.name_of(recurrent(tmp_path, **{"network.actor.type": "mlp"}).buffer) == "uniform"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"buffer.type": "uniform"}, "Networks with memory learn from sequences: set buffer.type=sequences"),
        ({"buffer.type": "sequences", "network.actor.type": "mlp"}, "transitions here: set buffer.type=uniform"),
        ({"buffer.size": 20}, "A sequence has 25 steps, and buffer.size holds 20"),
        ({"buffer.size": 100}, "A batch of 8 sequences of 25 steps is more than the 100 steps of buffer.size"),
    ],
)
def test_buffers_that_cannot_work_are_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        check_combination(recurrent(tmp_path, **changes))


def test_dqn_remembers_a_cue() -> None:
    settings = {**SETTINGS, "gamma": 0.9, "sequence_length": 4, "burn_in": 0, "gradient_steps": 1}
    network = {"actor": {"type": "lstm", "units": 8, "hidden_dims": [8]}}
    config = experiment(settings, "Recall", steps=3_000, env={"shortest": 1, "longest": 1}, network=network)
    assert greedy_return(config) >= 0.95

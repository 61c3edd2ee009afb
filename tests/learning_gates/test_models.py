"""Learning gates for dynamics models and for planning with them (`make test-learning`)."""

from __future__ import annotations

import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

from rl4sys.algorithms import PETS, PETSConfig, Problem
from rl4sys.dynamics import Truth, coverage, disagreement, reward_r2
from rl4sys.engine import run_update
from rl4sys.experience import Array, ArraySpec, Transitions
from rl4sys.experiments import Run, load_experiment
from rl4sys.networks import NetworksConfig
from rl4sys.policy import BoxAction
from rl4sys.seeding import Seeds

SEEDS = (1, 2, 3)
STEPS, UPDATES, HELD_OUT = 5_000, 1_500, 1_000
EPISODES = 12


def random_steps(count: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Observations, actions, rewards and next observations of Pendulum-v1 with uniformly random torques."""
    environment, rng = gymnasium.make("Pendulum-v1"), np.random.default_rng(seed)
    rows = []
    for step in range(count):
        if step % 200 == 0:
            seen, _ = environment.reset(seed=seed + step)
        action = rng.uniform(-2.0, 2.0, 1).astype(np.float32)
        following, reward, *_ = environment.step(action)
        rows.append((seen, action, np.float32(reward), following))
        seen = following
    seen_rows, actions, rewards, following_rows = zip(*rows, strict=True)
    return np.stack(seen_rows), np.stack(actions), np.array(rewards), np.stack(following_rows)


def trained(seed: int) -> PETS:
    """PETS with a model of 5,000 random steps."""
    seen, action, reward, following = random_steps(STEPS, 1_000 * seed)
    observation, torque = (ArraySpec("observation", "float32", (3,)),), BoxAction((-2.0,), (2.0,))
    problem = Problem(observation, torque, NetworksConfig(), torch.device("cpu"), Seeds(seed))
    algorithm, rng = PETSConfig().build(problem), np.random.default_rng(seed)
    ones = np.ones(algorithm.members * algorithm.config.batch_size, np.float32)
    for _ in range(UPDATES):
        ids = rng.integers(STEPS, size=len(ones))
        columns = {"observation": seen[ids]}, action[ids], reward[ids], ones, {"observation": following[ids]}
        run_update(algorithm, Transitions(*columns, ones.astype(np.int32), {}, ones, ids))
    return algorithm


@pytest.mark.learning
@pytest.mark.parametrize("seed", SEEDS)
def test_intervals_hold_and_members_disagree_off_the_data(seed: int) -> None:
    algorithm, rng = trained(seed), np.random.default_rng(seed)
    seen, action, reward, following = random_steps(HELD_OUT, 1_000 * seed + 77_777)
    torques = torch.from_numpy(action / np.float32(2.0))[:, None]
    far = seen.mean(0) + 3.0 * seen.std(0) * rng.standard_normal(seen.shape)
    with torch.no_grad():
        here, there = (
            algorithm.dynamics.forecast(
                algorithm.predictions, algorithm.standardization, torch.from_numpy(rows), torques
            )
            for rows in (seen, far.astype(np.float32))
        )
    truth = Truth(seen, following[:, None], reward[:, None])
    held = coverage(here, truth, [0.9])
    ratio = disagreement(there, truth.change_deviation) / disagreement(here, truth.change_deviation)
    print(f"\nseed {seed}: 90 % intervals hold {held}, disagreement × {ratio:.1f}, R² {reward_r2(here, truth):.4f}")
    assert held is not None
    assert 0.85 <= held[0] <= 0.95
    assert ratio >= 3.0
    assert reward_r2(here, truth) >= 0.95


@pytest.mark.learning
def test_pets_swings_the_pendulum_up_within_2500_steps(tmp_path: Path) -> None:
    """The mean of a few episodes depends on where they start: with the true dynamics some cost 350, others 0."""
    scores = []
    for seed in SEEDS:
        overrides = [f"seed={seed}", "threads=1", f"directory={tmp_path}", "training.num_eval_episodes=1"]
        began = time.process_time()
        run = Run.create(load_experiment("pets_Pendulum-v1.yaml", overrides))
        run.train()
        seconds, last = time.process_time() - began, run.learner.buffer.rows(1_600, 2_400)["reward"].sum() / 4.0
        scores.append(run.evaluate(EPISODES, seed=7).mean)
        print(f"\nseed {seed}: {scores[-1]:.1f}, last four episodes {last:.1f}, {seconds:.0f} CPU s")
    assert min(scores) >= -200.0

"""Evaluates a run from its checkpoints, without its environments, buffers and source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from rl4sys.checkpoints import Checkpoints
from rl4sys.environments import Grade
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.run_directory import RunDirectory
from rl4sys.learning import Evaluation, evaluate
from rl4sys.seeding import Seeds


class RunEvaluation(NamedTuple):
    """The evaluation of one checkpoint's policy."""

    step: int
    outcome: Evaluation
    skipped: tuple[str, ...]
    """Damaged checkpoints that would have come first."""


def evaluate_run(directory: RunDirectory, episodes: int, seed: int, *, best: bool) -> RunEvaluation:
    """Evaluates the best (or latest) policy of a run; if its checkpoint is damaged, the newest good one."""
    config = load_experiment(directory.config)
    checkpoints = Checkpoints(directory.checkpoints, config.training.keep_checkpoints)
    loaded = checkpoints.load_policy(checkpoints.best() if best else None)
    state: Mapping[str, Any] = loaded.state
    exploit = Components(config, torch.device("cpu"), Grade.E3).algorithm().policies.exploit
    environment = config.environment.for_evaluation()
    outcome = evaluate(
        exploit,
        state["learner"]["store"]["blob"],
        lambda seeds, count: environment.lanes(seeds, count, Grade.E3),
        episodes,
        Seeds(seed),
    )
    return RunEvaluation(loaded.step, outcome, loaded.skipped)

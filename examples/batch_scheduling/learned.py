"""A trained policy as a rule: it schedules many sequences side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from rl4sys.environments.scheduling import ProtocolName, Schedule, SchedulingEpisode, SchedulingRules, Workload
from rl4sys.environments.scheduling.features import CONTEXT, ROW
from rl4sys.experiments import RunDirectory
from rl4sys.experiments.learning_curves import NothingToPlot, plot
from rl4sys.experiments.policies.trained_policy import PolicyNotFound, find_policy
from rl4sys.policy import NumpyPolicy
from rl4sys.run_files import TRAINING_RETURN
from rl4sys.run_finder import RunNotFound, find_one

from .comparison import Rival, UnsuitablePolicy

_BATCH = 50


def draw_learning(runs: Sequence[str], output: Path) -> Path | None:
    """Returns in training over decisions, with an interval over seeds; None where no run has any."""
    directories = []
    for run in runs:
        try:
            directories.append(RunDirectory(find_one(run)))
        except RunNotFound:
            # A policy file has no history.
            continue
    try:
        return plot(directories, output, TRAINING_RETURN) if directories else None
    except NothingToPlot:
        return None


def learned_rival(name: str, path: str, protocol: ProtocolName, max_wait: float | None) -> Rival:
    """The exploit policy of a run or of a policy file."""
    try:
        trained = find_policy(path).policy
    except (PolicyNotFound, RunNotFound) as error:
        raise UnsuitablePolicy(str(error)) from error
    shapes = {array.name: array.shape for array in trained.exploit.observation}
    rows = shapes.get("candidates", (0, 0))
    if rows[1] != len(ROW) or shapes.get("context") != (len(CONTEXT),):
        raise UnsuitablePolicy(
            f"The policy '{path}' reads {shapes}; expected candidates with {len(ROW)} features and a context with "
            f"{len(CONTEXT)}. Train one in rl4sys/BatchScheduling-v0."
        )
    policy = NumpyPolicy(trained.exploit, np.array(trained.weights))
    rules = SchedulingRules(protocol, rows[0], max_wait)

    def run(sequences: Sequence[Workload], done: Callable[[], None]) -> list[Schedule]:
        batches = [sequences[first : first + _BATCH] for first in range(0, len(sequences), _BATCH)]
        return [schedule for batch in batches for schedule in _side_by_side(policy, batch, rules, done)]

    return Rival(name, run, learned=True)


def _side_by_side(
    policy: NumpyPolicy, sequences: Sequence[Workload], rules: SchedulingRules, done: Callable[[], None]
) -> list[Schedule]:
    episodes = [SchedulingEpisode(jobs, rules) for jobs in sequences]
    rows = np.zeros((len(episodes), rules.most, len(ROW)), np.float32)
    context = np.zeros((len(episodes), len(CONTEXT)), np.float32)
    counts = np.ones((len(episodes), 1), np.float32)
    noise = np.zeros((len(episodes), policy.noise_size), np.float32)
    running = list(range(len(episodes)))
    while running:
        for place in running:
            found, context[place] = episodes[place].observe()
            rows[place, : len(found)], counts[place] = found, len(found)
        observation = {"candidates": rows, "candidate_count": counts, "context": context}
        actions = policy.act(observation, noise).action
        for place in running:
            episodes[place].choose(int(actions[place]))
        ended = [place for place in running if episodes[place].over]
        running = [place for place in running if not episodes[place].over]
        for _ in ended:
            done()
    return [episode.schedule() for episode in episodes]

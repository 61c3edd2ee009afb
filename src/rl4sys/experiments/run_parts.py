"""What a run consists of while it is open: its learner, source, files, environments and monitor."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

import torch

from rl4sys.algorithms import Algorithm
from rl4sys.checkpoints import Checkpoints
from rl4sys.experiments.callbacks import Callbacks
from rl4sys.experiments.components import Components, EvaluationEnvironments, Source
from rl4sys.experiments.episode_log import EpisodeLog
from rl4sys.experiments.hash_log import HashLog
from rl4sys.experiments.metrics import MetricsFile
from rl4sys.experiments.monitoring.monitor import Monitor
from rl4sys.experiments.ranks.leader import GroupLeader, Leader, NoFollowers
from rl4sys.experiments.run_directory import RunDirectory
from rl4sys.experiments.run_state import RunState
from rl4sys.experiments.run_statistics import RunStatistics
from rl4sys.experiments.simulation.simulation import TrainingVideos
from rl4sys.experiments.threads import act_with_one_thread
from rl4sys.heap import keep_freed_memory
from rl4sys.learning import Learner


@dataclass(frozen=True, slots=True)
class RunParts:
    """Everything that is opened for a run, and closed with `resources`."""

    directory: RunDirectory
    components: Components
    learner: Learner
    source: Source
    evaluation_environments: EvaluationEnvironments
    checkpoints: Checkpoints
    statistics: RunStatistics
    metrics: MetricsFile
    hash_log: HashLog
    episode_log: EpisodeLog
    monitor: Monitor
    leader: Leader
    callbacks: Callbacks
    videos: TrainingVideos
    resources: ExitStack

    @property
    def state(self) -> RunState:
        """The parts that later steps depend on."""
        return RunState(
            self.checkpoints,
            self.learner,
            self.source,
            self.statistics,
            self.metrics,
            self.hash_log,
            self.monitor,
            self.leader,
            self.episode_log,
            self.components.kernels,
        )


def open_run(directory: RunDirectory, components: Components, threads: int, algorithm: Algorithm | None) -> RunParts:
    """Lock the directory, build the learner and its source, and open the files; all of it, or nothing."""
    config, statistics = components.config, RunStatistics()
    checkpoints = Checkpoints(directory.checkpoints, config.training.keep_checkpoints)
    leader: Leader = NoFollowers() if components.group is None else GroupLeader(components.group)
    callbacks = Callbacks([callback.build() for callback in config.callbacks])
    videos = TrainingVideos(directory.videos, components)
    with ExitStack() as resources:
        resources.enter_context(directory.hold())
        checkpoints.tidy()
        # Before anything is learned: the number of threads changes the bits.
        torch.set_num_threads(threads)
        act_with_one_thread()
        keep_freed_memory()
        leader.begin(components.setup(threads))
        learner = components.learner(directory.scratch, algorithm)
        learner.on_roll_back = leader.roll_back
        evaluation_environments = components.evaluation_environments()
        resources.callback(evaluation_environments.close)
        metrics = MetricsFile(directory.metrics)
        resources.callback(metrics.close)
        hash_log = HashLog(directory.hash_log, learner)
        resources.callback(hash_log.close)
        episode_log = EpisodeLog(directory.episodes)
        resources.callback(episode_log.close)
        source = components.source(learner)
        resources.callback(source.close)
        monitor = Monitor(config, directory.path, checkpoints, learner)
        resources.callback(monitor.close)
        return RunParts(
            directory,
            components,
            learner,
            source,
            evaluation_environments,
            checkpoints,
            statistics,
            metrics,
            hash_log,
            episode_log,
            monitor,
            leader,
            callbacks,
            videos,
            resources.pop_all(),
        )

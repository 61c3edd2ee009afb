"""Videos of a run as it learns: one episode of the newest policy now and then."""

from __future__ import annotations

import logging
from pathlib import Path

from rl4sys.experiments.components import Components
from rl4sys.experiments.process_random import process_random_state, restore_process_random
from rl4sys.experiments.simulation.simulation import Simulation, SimulationSetup
from rl4sys.learning import Learner

_log = logging.getLogger(__name__)


class TrainingVideos:
    """Records into `videos/`. A failure does not stop training.

    It has an environment and seeds of its own, so that a run with videos learns what one without them learns.
    """

    def __init__(self, directory: Path, components: Components) -> None:
        self._directory, self._components = directory, components
        self._has_failed = False

    def record(self, learner: Learner) -> None:
        """One episode of the newest exploit policy. After a failure there is a warning, and no further videos."""
        if self._has_failed:
            return
        random = process_random_state()
        try:
            with Simulation(self._play(learner)) as simulation:
                for _ in simulation.episodes(1):
                    pass
        except Exception as error:  # whatever ffmpeg, a driver or an environment raises, the run is worth more
            self._has_failed = True
            _log.warning("No video at step %d, and none from now on: %s", learner.steps, error)
        finally:
            restore_process_random(random)

    def _play(self, learner: Learner) -> SimulationSetup:
        config = self._components.config
        return SimulationSetup(
            learner.algorithm.policies.exploit,
            learner.store.newest.blob,
            config.environment,
            self._components.seeds.integer("video", learner.steps),
            config.training.video_length,
            video=self._directory / f"step_{learner.steps:012d}.mp4",
        )

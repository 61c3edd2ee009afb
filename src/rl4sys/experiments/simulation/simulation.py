"""Simulates episodes of a trained policy, to be shown, recorded or measured."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

import numpy as np

from rl4sys.environments import AnyLanes, EnvironmentConfig, EnvironmentSpec, EpisodeSummary, Grade
from rl4sys.experience import Array, Ending, StreamKey
from rl4sys.experiments.components import Components
from rl4sys.experiments.process_random import process_random_state, restore_process_random
from rl4sys.experiments.simulation.rendering import RenderedEnvironment
from rl4sys.experiments.simulation.video_file import Video, VideoFile, require_video
from rl4sys.learning import EndlessEpisode, Learner
from rl4sys.policy import KeyedNoise, NumpyPolicy, PolicySpec
from rl4sys.seeding import Seeds

_log = logging.getLogger(__name__)
EpisodeEnd: TypeAlias = Literal["terminated", "truncated", "cut"]
_MOST_STEPS = 100_000


class PolicyMisfit(ValueError):
    """A policy does not fit the environment."""


@dataclass(frozen=True, slots=True)
class SimulatedEpisode:
    """One simulated episode."""

    return_: float
    length: int
    ended: EpisodeEnd
    """`cut` where it was stopped at the maximum length and the environment would have continued."""


@dataclass(frozen=True, slots=True)
class SimulationSetup:
    """The policy and environment of a simulation, and what to do with its episodes."""

    spec: PolicySpec
    weights: Array
    environment: EnvironmentConfig
    """Played as for an evaluation."""
    seed: int = 0
    max_length: int | None = None
    """Steps after which an episode is cut; None waits for its end."""
    render: bool = False
    """Show it on a screen."""
    video: Path | None = None
    """Record it there."""


class Simulation:
    """Plays episodes one after the other. It is a context: left without an error, its video is finished."""

    def __init__(self, play: SimulationSetup) -> None:
        self._play = play
        self._file: VideoFile | None = None
        self._resources = ExitStack()
        self._lanes = self._open(Seeds(Seeds(play.seed).integer("simulation")))
        self._resources.callback(self._lanes.close)
        if self._file is not None:
            self._resources.enter_context(self._file)
        try:
            _require_fit(play, self._lanes.spec)
        except PolicyMisfit:
            self._resources.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._resources.__exit__(kind, error, trace)

    @property
    def video(self) -> Video | None:
        """What was recorded, once the simulation is left."""
        return self._file.video if self._file is not None else None

    def episodes(self, count: int) -> Iterator[SimulatedEpisode]:
        """Whole episodes, or as much of each as may be played."""
        policy, lanes = NumpyPolicy(self._play.spec, self._play.weights), self._lanes
        noise = KeyedNoise(Seeds(self._play.seed).integer("decisions"), [StreamKey("simulation")], policy.noise_size)
        observation, decisions = lanes.reset(), 0
        for _ in range(count):
            carry, return_, length = policy.initial_carry(1), 0.0, 0
            ended: list[EpisodeSummary] = []
            while not ended and length != self._play.max_length:
                _require_end(length)
                decision = policy.act(observation, noise.at(decisions), carry)
                carry = {name: memory.copy() for name, memory in decision.carry.items()}
                step = lanes.step(decision.action)
                observation, decisions = step.observation, decisions + 1
                if step.acted is not None and not step.acted[0]:
                    # This backend spent the step on a reset: nothing has happened yet.
                    carry = policy.initial_carry(1)
                    continue
                return_, length = return_ + float(step.reward[0]), length + 1
                ended = lanes.episodes()
            if ended:
                yield _episode(ended[0])
            else:
                observation = lanes.reset()
                yield SimulatedEpisode(return_, length, "cut")

    def _open(self, seeds: Seeds) -> AnyLanes:
        play, environment = self._play, self._play.environment.for_evaluation()
        if play.video is not None:
            require_video(play.video)
            watched = RenderedEnvironment(environment, "rgb_array")
            self._file = VideoFile(play.video, watched.frames_per_second)
            return watched.lanes(seeds, self._file.add)
        if play.render:
            return RenderedEnvironment(environment, "human").lanes(seeds)
        return environment.lanes(seeds, 1, Grade.E3)


def _require_fit(play: SimulationSetup, environment: EnvironmentSpec) -> None:
    missing = [array for array in play.spec.observation if array not in environment.observation]
    if missing or environment.action != play.spec.action:
        raise PolicyMisfit(
            f"The policy does not fit '{play.environment.name}': it sees {_listed(play.spec.observation)} and chooses "
            f"{play.spec.action}; the environment shows {_listed(environment.observation)} and wants "
            f"{environment.action}. Choose the environment that it was trained in."
        )


def _require_end(length: int) -> None:
    if length == _MOST_STEPS:
        raise EndlessEpisode(
            f"An episode did not end within {_MOST_STEPS:,} steps. Say where to cut it: --max-length 1000, for example."
        )


def _episode(summary: EpisodeSummary) -> SimulatedEpisode:
    how: EpisodeEnd = "terminated" if summary.ending is Ending.TERMINATED else "truncated"
    return SimulatedEpisode(summary.return_, summary.length, how)


def plot_episodes(episodes: Sequence[SimulatedEpisode], title: str, output: Path) -> Path:
    """Draw the return and the length of every episode into a PNG, with their means."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.4), layout="constrained")
    above, below = figure.subplots(2, sharex=True)
    numbers = np.arange(1, len(episodes) + 1)
    rows = ((above, "return", [e.return_ for e in episodes]), (below, "length", [float(e.length) for e in episodes]))
    for axes, name, values in rows:
        mean = float(np.mean(values))
        axes.bar(numbers, values, width=0.8, alpha=0.6)
        axes.axhline(mean, color="black", linewidth=1, linestyle="--")
        axes.set_ylabel(f"{name} (mean {mean:.1f})")
        axes.spines[["top", "right"]].set_visible(False)
    above.set_title(title)
    below.set_xlabel("episode")
    below.xaxis.get_major_locator().set_params(integer=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
    return output


def _listed(arrays: Sequence[object]) -> str:
    return ", ".join(map(str, arrays))


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

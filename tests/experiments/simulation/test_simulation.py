from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from experiments.runs import PPO
from experiments.trained import trained_run
from rl4sys.environments import ENVIRONMENTS, AnyLanes, EnvironmentConfig, Grade
from rl4sys.experience import ArraySpec
from rl4sys.experiments import CannotRender, PolicyMisfit, SimulatedEpisode, Simulation, SimulationSetup, plot_episodes
from rl4sys.experiments.policies.trained_policy import find_policy
from rl4sys.experiments.simulation.rendering import RenderedEnvironment
from rl4sys.learning import EndlessEpisode
from rl4sys.policy import DiscreteAction, Head, NumpyPolicy, PolicySpec, ProgramBuilder, layout_of, output_size
from rl4sys.seeding import Seeds

from .films import read_film


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> SimulationSetup:
    trained = find_policy(trained_run(PPO, tmp_path_factory.mktemp("trained")).path)
    assert trained.environment is not None
    return SimulationSetup(trained.policy.exploit, trained.policy.weights, trained.environment, seed=3)


def episodes_of(play: SimulationSetup, count: int) -> list[SimulatedEpisode]:
    with Simulation(play) as simulation:
        return list(simulation.episodes(count))


def test_a_seed_gives_the_same_episodes_and_another_gives_others(play: SimulationSetup) -> None:
    first = episodes_of(play, 4)
    assert first == episodes_of(play, 4)
    assert first != episodes_of(replace(play, seed=4), 4)
    assert all(episode.return_ == episode.length for episode in first)


def test_the_first_episode_is_that_of_the_environment_alone(play: SimulationSetup) -> None:
    """Played by hand, with nothing of the simulation but its seed."""
    seeds = Seeds(Seeds(play.seed).integer("simulation"))
    environment = gymnasium.make("CartPole-v1")
    observation, _ = environment.reset(seed=seeds.integer("environment", 0) % 2**31)
    policy, length, ended = NumpyPolicy(play.spec, play.weights), 0, False
    while not ended:
        rows = {"observation": np.asarray(observation, np.float32)[None]}
        action = policy.act(rows, np.zeros((1, 0), np.float32)).action
        observation, _, terminated, truncated, _ = environment.step(int(action[0]))
        length, ended = length + 1, terminated or truncated
    assert episodes_of(play, 1) == [
        SimulatedEpisode(float(length), length, "terminated" if terminated else "truncated")
    ]


def test_a_maximum_length_cuts(play: SimulationSetup) -> None:
    whole, cut = episodes_of(play, 3), episodes_of(replace(play, max_length=4), 3)
    assert [episode.length for episode in cut] == [4, 4, 4]
    assert {episode.ended for episode in cut} == {"cut"}
    assert cut[0].return_ == 4.0
    assert min(episode.length for episode in whole) > 4


@pytest.mark.parametrize("backend", ["lanes", "vector"])
def test_every_backend_counts_alike(play: SimulationSetup, backend: str) -> None:
    environment = play.environment.model_copy(update={"backend": backend})
    found = episodes_of(replace(play, environment=environment), 3)
    assert len(found) == 3
    assert all(episode.return_ == episode.length for episode in found)


def test_an_endless_episode_is_refused(play: SimulationSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rl4sys.experiments.simulation.simulation._MOST_STEPS", 5)
    with pytest.raises(EndlessEpisode, match="--max-length 1000"):
        episodes_of(play, 1)


def test_a_policy_of_another_environment_is_refused(play: SimulationSetup) -> None:
    elsewhere = replace(play, environment=ENVIRONMENTS.parse({"name": "Pendulum-v1"}))
    with pytest.raises(PolicyMisfit, match=r"does not fit 'Pendulum-v1': it sees observation: float32\[4\]"):
        Simulation(elsewhere)


def test_a_video_holds_the_beginning_and_every_step(play: SimulationSetup, tmp_path: Path) -> None:
    pytest.importorskip("imageio_ffmpeg")
    with Simulation(replace(play, max_length=5, video=tmp_path / "a.mp4")) as simulation:
        filmed = list(simulation.episodes(2))
    assert filmed == episodes_of(replace(play, max_length=5), 2)
    assert simulation.video == (tmp_path / "a.mp4", 12, 50.0, 600, 400)
    images = read_film(tmp_path / "a.mp4").images
    assert images.shape == (12, 400, 600, 3)
    # A white image with a cart and a pole in it, which moves.
    assert 200 < images[0].mean() < 255
    assert np.abs(images[0].astype(int) - images[5]).max() > 50


def test_skipped_frames_slow_the_video_down(play: SimulationSetup) -> None:
    skipping = play.environment.model_copy(update={"frame_skip": 5})
    assert RenderedEnvironment(skipping, "rgb_array").frames_per_second == 10.0


def test_an_environment_that_cannot_render_is_refused_at_once(play: SimulationSetup, tmp_path: Path) -> None:
    invisible = replace(play, environment=ENVIRONMENTS.parse({"name": "rl4sys/Chain-v0"}), video=tmp_path / "a.mp4")
    with pytest.raises(CannotRender, match=r"its render modes are \[\]\. Simulate it without --video"):
        Simulation(invisible)
    assert not list(tmp_path.iterdir())


def test_without_a_screen_there_is_no_window(play: SimulationSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CannotRender, match="Record a video instead"):
        Simulation(replace(play, render=True))


def test_a_screen_that_cannot_be_opened_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mujoco")
    monkeypatch.setenv("DISPLAY", ":99")
    monkeypatch.setattr("glfw.init", lambda: False)
    with pytest.raises(CannotRender, match=r"\(DISPLAY=:99\S*\) cannot be opened\. Record a video instead"):
        RenderedEnvironment(ENVIRONMENTS.parse({"name": "Hopper-v5"}), "human")


def test_a_window_of_a_dummy_driver_changes_nothing(play: SimulationSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    shown = episodes_of(replace(play, render=True, max_length=3), 1)
    assert shown == episodes_of(replace(play, max_length=3), 1)


def test_episodes_are_drawn(tmp_path: Path) -> None:
    from matplotlib.image import imread

    episodes = [SimulatedEpisode(float(n), n, "terminated") for n in (5, 7, 9)]
    image = imread(plot_episodes(episodes, "three", tmp_path / "new" / "a.png"))
    assert image.shape[0] > 400
    assert image.std() > 0.05


def test_a_policy_with_memory_forgets_between_episodes() -> None:
    """One that counts to three by its memory: it goes right until then, and left ever after."""
    arrays = (ArraySpec("observation", "float32", (4,)),)
    builder = ProgramBuilder(arrays)
    hidden = builder.gru(builder.features(standardize=False), 1, "memory")
    scores = builder.linear(hidden, 2, "actor")
    spec = PolicySpec(DiscreteAction(2), builder.program(), Head("deterministic", (scores,)))
    tensors = {tensor.name: np.zeros(tensor.shape, np.float32) for tensor in spec.program.tensors}
    # The new value is 1, and the memory keeps half of the old one: 1/2, 3/4, 7/8, 15/16, …
    tensors["memory.input_bias"][:] = (0.0, 0.0, 10.0)
    tensors["actor.weight"][:] = ((1.0, -1.0),)
    tensors["actor.bias"][:] = (-0.9, 0.9)
    weights = np.concatenate([tensors[tensor.name].ravel() for tensor in spec.program.tensors])
    play = SimulationSetup(spec, weights, ENVIRONMENTS.parse({"name": "CartPole-v1"}))
    actions: list[int] = []

    class Noting(Simulation):
        def _open(self, seeds: Seeds) -> AnyLanes:
            lanes = super()._open(seeds)
            step = lanes.step
            lanes.step = lambda action: (actions.append(int(action[0])), step(action))[1]  # type: ignore
            return lanes

    with Noting(play) as simulation:
        lengths = [episode.length for episode in simulation.episodes(2)]
    assert actions[:5] == actions[lengths[0] : lengths[0] + 5] == [1, 1, 1, 0, 0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["HalfCheetah-v5", "dm_control/cartpole/swingup"])
def test_mujoco_is_recorded_without_a_screen(name: str, tmp_path: Path) -> None:
    for package in ("imageio_ffmpeg", "mujoco", *(["dm_control"] if name.startswith("dm") else [])):
        pytest.importorskip(package)
    play = linear_policy(ENVIRONMENTS.parse({"name": name}))
    with Simulation(replace(play, video=tmp_path / "a.mp4")) as simulation:
        assert [episode.length for episode in simulation.episodes(1)] == [3]
    images = read_film(tmp_path / "a.mp4").images
    assert len(images) == 4
    assert images.std() > 10


def linear_policy(config: EnvironmentConfig) -> SimulationSetup:
    """A policy for any environment of vectors, which does something whatever it sees."""
    lanes = config.lanes(Seeds(0), 1, Grade.E3)
    lanes.close()
    builder = ProgramBuilder(lanes.spec.observation)
    output = builder.linear(builder.features(standardize=False), output_size(lanes.spec.action), "actor")
    spec = PolicySpec(lanes.spec.action, builder.program(), Head("deterministic", (output,)))
    weights = np.random.default_rng(0).standard_normal(layout_of(spec.program).size).astype(np.float32)
    return SimulationSetup(spec, weights, config, max_length=3)

"""Atari games in the real emulator: names, errors, and frames equal to those of Gymnasium."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

from rl4sys.environments import ENVIRONMENTS, AtariConfig, Grade, MissingDependency, UnknownEnvironment, probe
from rl4sys.environments.atari_games import MissingRom, game_name, game_names
from rl4sys.experiments import Run, load_experiment

from .samples import SEEDS, resumed

pytest.importorskip("ale_py")


def game(name: str, **settings: Any) -> AtariConfig:
    return AtariConfig.model_validate({"name": f"atari/{name}", **settings})


def of_gymnasium(name: str, noops: int) -> gymnasium.Env[Any, Any]:
    importlib.import_module("ale_py")
    raw = gymnasium.make(f"ALE/{name}-v5", frameskip=1, repeat_action_probability=0.0)
    return FrameStackObservation(AtariPreprocessing(raw, noop_max=noops), 4)


@pytest.mark.parametrize("name", ["atari/SpaceInvaders", "atari/space_invaders", "ALE/SpaceInvaders-v5"])
def test_a_game_has_several_names(name: str) -> None:
    chosen = ENVIRONMENTS.parse({"name": name})
    assert isinstance(chosen, AtariConfig)
    assert chosen.name == "atari/SpaceInvaders"


def test_all_games_for_one_player_are_known() -> None:
    names = game_names()
    assert len(names) == 104
    assert {"atari/Pong", "atari/MontezumaRevenge", "atari/UpNDown"} <= set(names)
    assert all(game_name(name) == name for name in names)


@pytest.mark.parametrize(("name", "noops"), [("Pong", 0), ("Breakout", 0), ("Breakout", 1), ("Seaquest", 0)])
def test_frames_and_rewards_equal_those_of_gymnasium(name: str, noops: int) -> None:
    pytest.importorskip("cv2")
    whole = game(name, noop_max=noops, fire_reset=False).for_evaluation()
    ours, theirs = whole.maker()(), of_gymnasium(name, noops)
    seen, wanted = ours.reset(seed=1)[0], theirs.reset(seed=1)[0]
    rng, steps = np.random.default_rng(1), 0
    assert ours.action_space == theirs.action_space
    ended = False
    while not ended and steps < 300:
        assert np.array_equal(seen["pixels"].transpose(2, 0, 1), wanted)
        action = int(rng.integers(theirs.action_space.n))
        seen, reward, ended, *_ = ours.step(action)
        wanted, expected, terminated, *_ = theirs.step(action)
        assert (reward, ended) == (expected, terminated)
        steps += 1
    assert steps > 100


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Pong", "Breakout", "Qbert", "Tetris"])
def test_the_probe_finds_that_games_save_themselves(name: str) -> None:
    assert probe(game(name).maker(), SEEDS, steps=10) is Grade.E0


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_games_resume_to_the_bit(sticky: float) -> None:
    lanes, is_same = resumed(game("Breakout", sticky_actions=sticky, size=36).maker(), Grade.E0, before=45, after=60)
    assert is_same
    assert lanes.inexact == []


def test_a_restored_game_shows_equal_frames() -> None:
    one, other = (game("Pong").maker()() for _ in range(2))
    one.reset(seed=3)
    other.reset(seed=4)
    for _ in range(20):
        one.step(2)
    layers: list[tuple[Any, Any]] = [(one, other), (one.unwrapped, other.unwrapped)]
    for ours, restored in layers:
        restored.set_state(ours.get_state())
    for action in (3, 2, 0, 5, 1):
        assert np.array_equal(one.step(action)[0]["pixels"], other.step(action)[0]["pixels"])


def test_a_misspelt_game_is_met_with_a_suggestion() -> None:
    with pytest.raises(UnknownEnvironment, match=r"Did you mean .*atari/Breakout"):
        game("Brekout").lanes(SEEDS, 1, Grade.E3)


def test_a_game_for_two_players_is_refused() -> None:
    with pytest.raises(UnknownEnvironment, match="'atari/Combat' is for two players"):
        game("Combat").lanes(SEEDS, 1, Grade.E3)


def test_a_damaged_emulator_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ale_py.py").write_text("raise ImportError('libSDL2 is missing')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ale_py", raising=False)
    with pytest.raises(MissingDependency, match=r"cannot be imported here \(libSDL2 is missing\)"):
        game("Pong").lanes(SEEDS, 1, Grade.E3)


def test_a_missing_emulator_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    with pytest.raises(MissingDependency, match=r"needs ale-py.*pip install 'rl4sys\[atari\]'"):
        game("Pong").lanes(SEEDS, 1, Grade.E3)


def test_a_missing_rom_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ALE_ROMS_DIR", str(tmp_path))
    with pytest.raises(MissingRom, match=r"ROM of 'atari/Pong' cannot be read.*unset ALE_ROMS_DIR"):
        game("Pong").lanes(SEEDS, 1, Grade.E3)


def test_a_game_in_the_wrapper_of_gymnasium_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'atari/Pong' is an Atari game; set environment.wrapper to atari"):
        ENVIRONMENTS.parse({"wrapper": "gym", "name": "atari/Pong"})


def test_a_limit_that_leaves_no_time_to_play_is_refused() -> None:
    with pytest.raises(ValueError, match="max_frames=38 may end a game before its first step"):
        game("Pong", max_frames=38)


@pytest.mark.parametrize("settings", [{"size": 200}, {"sticky_actions": 1.0}, {"frame_skip": 0}, {"stack": 0}])
def test_impossible_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        game("Pong", **settings)


def test_the_emulator_is_imported_only_when_a_game_is_made() -> None:
    code = "import sys, rl4sys.environments; sys.exit('ale_py' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], env=os.environ, check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_resumed_run_equals_the_uninterrupted_one(tmp_path: Path, algorithm: str) -> None:
    small = {"type": "cnn", "filters": [4, 4], "kernels": [8, 4], "strides": [4, 2], "hidden_dims": [8]}
    settings = {"epochs": 1, "minibatch_size": 32} if algorithm == "ppo" else {"learning_starts": 32, "batch_size": 8}
    values: dict[str, Any] = {
        "algorithm": {"name": algorithm, **settings},
        "network": {"actor": small, "critic": small} if algorithm == "ppo" else {"critic": small},
        "environment": {"name": "atari/Breakout", "num_envs": 2, "size": 36, "sticky_actions": 0.25},
        "buffer": {"size": 64},
        "training": {"total_timesteps": 192, "eval_frequency": 0, "checkpoint_frequency": 1000},
        "logging": {"terminal": False, "tensorboard": False},
        "experiment": {"threads": 1, "directory": str(tmp_path)},
    }
    config = load_experiment(values)
    expected = Run.create(config).train().fingerprint
    with Run.create(config) as run:
        while run.steps < 100:
            run.step()
        run.save()
        run.step()
    resumed_run = Run.resume(run.directory)
    assert {**resumed_run.train().fingerprint, "metrics": ""} == {**expected, "metrics": ""}
    assert resumed_run.inexact == ()

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.runs import PPO
from experiments.simulation.films import read_film
from experiments.trained import trained_run
from rl4sys.experiments import RunDirectory
from rl4sys.experiments.policies.trained_policy import find_policy

from .commands import Here


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return trained_run(PPO, tmp_path_factory.mktemp("simulate"))


def test_episodes_are_printed_as_a_table(rl4sys: Here, trained: RunDirectory) -> None:
    code, out, err = rl4sys("simulate", str(trained.path), "--episodes", "3", "--max-length", "5")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == ["episode", "return", "length", "ended"]
    assert lines[1].split() == ["1", "5.00", "5", "cut"]
    assert f"policy  {trained.path}, step" in out
    assert "in CartPole-v1" in out
    assert "return  5.00 ± 0.00, from 5.00 to 5.00" in out


def test_json_has_every_episode_and_the_same_seed_repeats_them(rl4sys: Here, trained: RunDirectory) -> None:
    command = ("simulate", str(trained.path), "--episodes", "2", "--seed", "5", "--json")
    values = json.loads(rl4sys(*command).out)
    assert values == json.loads(rl4sys(*command).out)
    assert values["mean"] == sum(episode["return"] for episode in values["episodes"]) / 2
    assert (values["environment"], values["seed"], values["deterministic"]) == ("CartPole-v1", 5, True)
    assert values["video"] is None
    other = json.loads(rl4sys(*command, "--stochastic").out)
    assert other["deterministic"] is False
    assert other["episodes"] != values["episodes"]


@pytest.mark.slow
def test_a_video_and_a_plot_are_written(rl4sys: Here, trained: RunDirectory) -> None:
    pytest.importorskip("imageio_ffmpeg")
    command = ("simulate", str(trained.path), "--episodes", "2", "--max-length", "4", "--video", "new/a.mp4")
    code, out, err = rl4sys(*command, "--plot", "new/a.png")
    assert (code, err) == (0, "")
    assert "video   new/a.mp4: 10 frames, 50 per second, 600×400" in out
    assert len(read_film(Path("new/a.mp4")).images) == 10
    assert Path("new/a.png").read_bytes().startswith(b"\x89PNG")


def test_a_checkpoint_is_simulated_by_its_path(rl4sys: Here, trained: RunDirectory) -> None:
    place = trained.checkpoints / f"{256:012d}"
    values = json.loads(rl4sys("simulate", str(place), "--episodes", "1", "--max-length", "2", "--json").out)
    assert (values["step"], values["policy"]) == (256, str(place))


def test_a_policy_file_has_its_environment_and_can_use_another(rl4sys: Here, trained: RunDirectory) -> None:
    trained_policy = find_policy(trained.path).policy
    trained_policy.write(Path("a.rl4sys"))
    replace(trained_policy, environment=None).write(Path("b.rl4sys"))
    command = ("--episodes", "1", "--max-length", "2", "--json")
    assert json.loads(rl4sys("simulate", "a.rl4sys", *command).out)["environment"] == "CartPole-v1"
    assert "Give one: --env CartPole-v1" in rl4sys("simulate", "b.rl4sys", *command).err
    given = rl4sys("simulate", "b.rl4sys", "--env", "gym/CartPole/v1", *command)
    assert json.loads(given.out)["environment"] == "CartPole-v1"


def test_a_damaged_checkpoint_is_skipped_with_a_warning(rl4sys: Here) -> None:
    run = trained_run(PPO, Path("runs"))
    (run.checkpoints / f"{256:012d}" / "state.json").write_bytes(b"{}")
    code, out, err = rl4sys("simulate", "ppo", "--latest", "--episodes", "1", "--max-length", "2")
    assert code == 0
    assert "warning: skipped a damaged checkpoint" in err
    assert "step 256" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--render", "--video", "a.mp4"), "--render and --video: an environment can render for one of them only"),
        (("--video", "a.gif"), "'a.gif' is no name for a video; let it end in .mp4"),
        (("--render",), "There is no screen to render on"),
        (("--env", "Pendulum-v1"), "The policy does not fit 'Pendulum-v1'"),
        (("--env", "CartPool-v1"), "Unknown environment 'CartPool-v1'. Did you mean"),
    ],
)
def test_an_impossible_request_is_a_one_line_error(
    rl4sys: Here,
    trained: RunDirectory,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    code, out, err = rl4sys("simulate", str(trained.path), "--episodes", "1", *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert message in err
    assert not Path("a.mp4").exists()


def test_an_unknown_run_is_reported_with_a_suggestion(rl4sys: Here) -> None:
    trained_run(PPO, Path("runs"), experiment__name="balance")
    code, _, err = rl4sys("simulate", "balanse-seed0-2026")
    assert code == 2
    assert "There is no run 'balanse-seed0-2026', here or in runs/. Did you mean balance-seed0-" in err


@pytest.mark.parametrize("command", [("simulate",), ("policy", "export"), ("policy", "inspect"), ("policy", "bench")])
@pytest.mark.parametrize("width", ["40", "80"])
def test_commands_have_help_with_examples(
    rl4sys: Here, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    code, out, err = rl4sys(*command, "--help")
    text = " ".join(out.split())
    assert (code, err) == (0, "")
    assert f"Examples rl4sys {' '.join(command)}" in text
    assert "[bold]" not in text
    assert "--debug" in text


def test_training_settings_reach_the_config(rl4sys: Here, config: Path) -> None:
    out = rl4sys("train", str(config), "training.video_frequency=64", "--dry-run").out
    assert "video_frequency: 64" in out

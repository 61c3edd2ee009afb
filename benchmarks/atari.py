"""Atari: decisions per CPU second against Gymnasium's wrappers, and PPO against stable-baselines3 at equal networks.

Both comparisons alternate in one run, with processes of their own for PPO; the result is the ratio of the medians.
stable-baselines3 is installed into a venv of its own, as for training.py. Its PPO gets networks equal to ours: one
nature CNN for the policy and one for the critic. Both count emulated frames, four to a decision.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
RIVAL = HERE / ".venv-sb3"
GAMES = ("Pong", "Breakout", "Seaquest")
TARGETS = {"decisions": 1.2, "ppo": 1.5}
"""The lowest acceptable ratios."""
PPO = {"game": "Pong", "warmup": 1_024}
SKIP = 4


def compare_decisions(game: str, rounds: int, decisions: int) -> float:
    """The ratio of our decisions per CPU second to those of Gymnasium, with random actions."""
    speeds: dict[str, list[float]] = {"rl4sys": [], "gymnasium": []}
    environments = {"rl4sys": _ours(game), "gymnasium": _gymnasium(game)}
    for number in range(rounds):
        for name, environment in environments.items():
            speeds[name].append(_decisions_per_second(environment, decisions, seed=number))
    medians = {name: statistics.median(each) for name, each in speeds.items()}
    ratio = medians["rl4sys"] / medians["gymnasium"]
    print(
        f"{game:10s} {medians['rl4sys']:8,.0f} decisions per CPU second, Gymnasium {medians['gymnasium']:8,.0f}: "
        f"{ratio:.2f} times (at least {TARGETS['decisions']})"
    )
    return ratio


def compare_ppo(rounds: int, threads: int, steps: int) -> float:
    """The ratio of our frames per second in PPO to those of stable-baselines3."""
    job = json.dumps(PPO | {"threads": threads, "total": steps})
    ours = [sys.executable, __file__, "--ours", job]
    rival = [str(RIVAL / "bin" / "python"), str(HERE / "rival_sb3_atari.py"), job]
    speeds = [(_speeds(ours), _speeds(rival)) for _ in range(rounds)]
    ratios = []
    for place, unit in enumerate(("second", "CPU second")):
        mine, theirs = (SKIP * statistics.median(pair[side][place] for pair in speeds) for side in range(2))
        ratios.append(mine / theirs)
        print(
            f"PPO on {PPO['game']}, {threads} thread(s): {mine:,.0f} frames per {unit}, stable-baselines3 "
            f"{theirs:,.0f}: {mine / theirs:.2f} times (at least {TARGETS['ppo']})"
        )
    # Other processes disturb the clock more than the CPU seconds, which count all threads.
    return ratios[1] if threads == 1 else ratios[0]


def _ours(game: str):
    from rl4sys.environments import AtariConfig

    # Whole games, as on the other side.
    return AtariConfig(name=f"atari/{game}", fire_reset=False).for_evaluation().maker()()


def _gymnasium(game: str):
    import ale_py  # noqa: F401
    import gymnasium
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    raw = gymnasium.make(f"ALE/{game}-v5", frameskip=1, repeat_action_probability=0.0, disable_env_checker=True)
    return FrameStackObservation(AtariPreprocessing(raw), 4)


def _decisions_per_second(environment, decisions: int, seed: int) -> float:
    import numpy as np

    actions = np.random.default_rng(seed).integers(environment.action_space.n, size=decisions).tolist()
    environment.reset(seed=seed)
    spent = 0.0
    for action in actions:
        began = time.process_time()
        _, _, terminated, truncated, _ = environment.step(action)
        spent += time.process_time() - began
        if terminated or truncated:
            environment.reset()
    return decisions / spent


def _speeds(command: list[str]) -> tuple[float, float]:
    """Steps per second, and per CPU second."""
    output = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    speeds = json.loads(output.strip().splitlines()[-1])
    return speeds["steps_per_second"], speeds["steps_per_cpu_second"]


def run_ours(job: dict) -> None:
    """Train as the job specifies and print the speed after the warm-up."""
    from rl4sys.experiments import Run, load_experiment

    with tempfile.TemporaryDirectory() as directory:
        config = load_experiment(
            f"ppo_atari-{job['game']}.yaml",
            [
                f"experiment.directory={directory}",
                f"experiment.threads={job['threads']}",
                f"training.total_timesteps={job['warmup'] + job['total']}",
                "training.eval_frequency=0",
                "training.num_eval_episodes=1",
                "logging.tensorboard=false",
                "logging.terminal=false",
            ],
        )
        with Run.create(config) as run:
            while run.steps < job["warmup"]:
                run.step()
            began, spent, steps = time.perf_counter(), time.process_time(), run.steps
            while not run.finished:
                run.step()
            trained = run.steps - steps
            speed, cpu_speed = trained / (time.perf_counter() - began), trained / (time.process_time() - spent)
        print(json.dumps({"steps_per_second": speed, "steps_per_cpu_second": cpu_speed}))


def ensure_rival() -> None:
    from training import ensure_rival

    ensure_rival()
    if not (RIVAL / ".ready-atari").is_file():
        print("installing ale-py and OpenCV beside stable-baselines3 …", flush=True)
        constraints = ["-c", str(HERE / "rival_constraints.txt")]
        pip = [str(RIVAL / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *constraints]
        subprocess.run([*pip, "ale-py", "opencv-python-headless"], check=True)
        (RIVAL / ".ready-atari").touch()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--decisions", type=int, default=1_000, help="decisions in each round of each side")
    parser.add_argument("--steps", type=int, default=3_072, help="steps of PPO after the warm-up, 1,024 to an update")
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--only", choices=sorted(TARGETS), help="one of the two comparisons")
    parser.add_argument("--ours", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ours:
        run_ours(json.loads(arguments.ours))
        return
    slow = []
    if arguments.only != "ppo":
        ratios = {game: compare_decisions(game, arguments.rounds, arguments.decisions) for game in GAMES}
        slow += [game for game, ratio in ratios.items() if ratio < TARGETS["decisions"]]
    if arguments.only != "decisions":
        ensure_rival()
        threads = {count: compare_ppo(arguments.rounds, count, arguments.steps) for count in arguments.threads}
        slow += [f"PPO with {count} thread(s)" for count, ratio in threads.items() if ratio < TARGETS["ppo"]]
    if slow:
        raise SystemExit(f"Below its target: {', '.join(slow)}")


if __name__ == "__main__":
    main()

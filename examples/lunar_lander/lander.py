"""Lunar Lander as a client of a training server, in the original call style. It needs no torch."""

from __future__ import annotations

import argparse
import time
from collections import deque
from pathlib import Path
from typing import Any

import gymnasium

from rl4sys import RL4SysAgent

HERE = Path(__file__).parent
_RECENT = 50


class Pace:
    """Limits the decisions per second, as the clock of a live system would; `None` means no limit."""

    def __init__(self, per_second: float | None) -> None:
        self._seconds = 0.0 if per_second is None else 1.0 / per_second
        self._next = time.monotonic()

    def wait(self) -> None:
        """Wait until the next decision is due."""
        if self._seconds:
            self._next = max(self._next + self._seconds, time.monotonic() - 0.1)
            time.sleep(max(0.0, self._next - time.monotonic()))


def main() -> None:
    """Fly, and print progress."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", nargs="?", type=Path, default=HERE / "ppo.json")
    parser.add_argument("--episodes", type=int, default=1_500)
    parser.add_argument("--continuous", action="store_true", help="throttle the engines instead of switching them")
    parser.add_argument("--speed", type=float, help="decisions per second at most; as fast as possible if not given")
    given = parser.parse_args()
    environment = gymnasium.make("LunarLanderContinuous-v3" if given.continuous else "LunarLander-v3")
    pace = Pace(given.speed)
    recent: deque[float] = deque(maxlen=_RECENT)
    with RL4SysAgent(conf_path=given.config, action_space=environment.action_space) as agent:
        try:
            for number in range(1, given.episodes + 1):
                recent.append(fly(agent, environment, pace))
                if number % 25 == 0 or number == given.episodes:
                    report(agent, number, sum(recent) / len(recent))
        except KeyboardInterrupt:
            print("\nStopped; sending what is recorded.")
        sent = agent.flush()
        health = agent.agent.health()
        lost = f"lost {dict(health.drops)}" if health.drops else "nothing lost"
        print(f"{health.acknowledged:,} segments are safe on the server{'' if sent else ', some still wait'}; {lost}.")


def report(agent: RL4SysAgent, number: int, mean: float) -> None:
    """Print one line of progress."""
    health = agent.agent.health()
    print(
        f"episode {number:5}  steps {health.decisions:8,}  mean return {mean:7.1f}  policy version {health.version}",
        flush=True,
    )


def fly(agent: RL4SysAgent, environment: gymnasium.Env[Any, Any], pace: Pace) -> float:
    """Fly one episode; gives its return."""
    trajectory, total, done = None, 0.0, False
    observation, _ = environment.reset()
    while not done:
        pace.wait()
        trajectory, action = agent.request_for_action(trajectory, observation)
        observation, reward, terminated, truncated, _ = environment.step(action.act)
        agent.add_to_trajectory(trajectory, action)
        action.update_reward(float(reward))
        total += float(reward)
        done = terminated or truncated
    agent.mark_end_of_trajectory(trajectory, action, final_observation=observation, truncated=truncated)
    return total


if __name__ == "__main__":
    main()

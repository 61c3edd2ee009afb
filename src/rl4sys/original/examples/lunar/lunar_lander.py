"""`python -m rl4sys.examples.lunar.lunar_lander`: Lunar Lander as a client of a training server, with the options of
the original example. A newer one with more to try is examples/lunar_lander in the repository.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rl4sys.client import RL4SysAgent
from rl4sys.original.utils.logging_config import RL4SysLogConfig
from rl4sys.original.utils.util import StructuredLogger

_PLACES = (Path("rl4sys/examples/lunar/luna_conf.json"), Path("luna_conf.json"))
"""Where the config is looked for, before that of this directory."""
_LANDED = 200.0


class LunarLanderSim:
    """Flies episodes and adds every decision to its trajectory."""

    def __init__(
        self,
        seed: int,
        client_id: str,
        performance_metric: int = 0,
        render_game: bool = False,
        debug: bool = False,
        conf_path: Path | None = None,
    ) -> None:
        self._seed = seed
        self.logger = StructuredLogger("LunarLanderSim", debug)
        self.env = _lander(render_game)
        path = conf_path or next((place for place in _PLACES if place.exists()), None)
        self.rlagent = RL4SysAgent(conf_path=path or Path(__file__).with_name("luna_conf.json"), debug=debug)
        self.simulator_stats: dict[str, Any] = {"moves": 0, "total_iterations": 0, "success_count": 0, "returns": []}
        self.logger.info("Initialized", client_id=client_id, seed=seed, performance_metric=performance_metric)

    def run_application(self, num_iterations: int, max_moves: int) -> None:
        """Fly this many episodes of at most `max_moves` decisions."""
        for iteration in range(num_iterations):
            began = time.perf_counter()
            moves, total = self._fly(self._seed + iteration, max_moves)
            stats = self.simulator_stats
            stats["moves"] += moves
            stats["total_iterations"] += 1
            stats["success_count"] += total >= _LANDED
            stats["returns"].append(total)
            self.logger.info(
                "Iteration completed",
                iteration=iteration,
                moves=moves,
                cumulative_reward=round(total, 1),
                steps_per_second=round(moves / (time.perf_counter() - began), 1),
                version=self.rlagent.local_version,
            )
        self.env.close()

    def close(self) -> None:
        """Send what is left."""
        self.rlagent.close()

    def build_observation(self, obs: Any) -> Any:
        """The observation as a batch of one."""
        return np.asarray(obs, np.float32)[np.newaxis]

    def _fly(self, seed: int, max_moves: int) -> tuple[int, float]:
        obs, _ = self.env.reset(seed=seed)
        traj, total, moves, over = None, 0.0, 0, False
        while not over and moves < max_moves:
            traj, action = self.rlagent.request_for_action(traj, self.build_observation(obs))
            self.rlagent.add_to_trajectory(traj, action)
            obs, reward, terminated, truncated, _ = self.env.step(int(action.act))
            action.update_reward(reward)
            total, moves, over = total + float(reward), moves + 1, bool(terminated or truncated)
        if traj is not None:
            self.rlagent.mark_end_of_trajectory(traj, action, self.build_observation(obs), truncated=not terminated)
        return moves, total


def _lander(render: bool) -> Any:
    try:
        # Gymnasium is no requirement of the client.
        gymnasium = importlib.import_module("gymnasium")
        return gymnasium.make("LunarLander-v3", render_mode="human" if render else None)
    except ImportError as error:
        raise SystemExit(f"{error}. Install Lunar Lander with: pip install 'gymnasium[box2d]'") from error


def _is_true(text: str) -> bool:
    return text.lower() in ("true", "1", "yes")


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the options, fly and print a summary."""
    parser = argparse.ArgumentParser(prog="python -m rl4sys.examples.lunar.lunar_lander", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="seed of the environment")
    parser.add_argument("--score-type", type=int, default=0, help="accepted; it has no effect")
    parser.add_argument("--number-of-iterations", type=int, default=20, help="episodes")
    parser.add_argument("--number-of-moves", type=int, default=200, help="most decisions of one episode")
    parser.add_argument("--render", type=_is_true, default=False, help="show the lander: True or False")
    parser.add_argument("--client-id", default="lunar_lander", help="a name for the log; the config has the client's")
    parser.add_argument("--tensorboard", default=None, help="accepted; the server records what TensorBoard shows")
    parser.add_argument("--config", type=Path, help="the config; by default luna_conf.json here or beside this module")
    parser.add_argument("--debug", action="store_true", help="log more")
    given, _ = parser.parse_known_args(arguments)
    config = RL4SysLogConfig.get_default_config("DEBUG" if given.debug else "INFO", structured_logging=True)
    RL4SysLogConfig.setup_logging(config_dict=config)
    game = LunarLanderSim(
        seed=given.seed,
        client_id=given.client_id,
        performance_metric=given.score_type,
        render_game=given.render,
        debug=given.debug,
        conf_path=given.config,
    )
    game.run_application(num_iterations=given.number_of_iterations, max_moves=given.number_of_moves)
    game.close()
    stats = game.simulator_stats
    mean = sum(stats["returns"]) / max(1, len(stats["returns"]))
    sys.stdout.write(f"{stats['total_iterations']} episodes, {stats['moves']} moves, mean return {mean:.1f}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs one peer in one work, in the peer's own environment; prints a line of JSON."""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from asking_system import Decider, RandomDecider, ask
from inverted_loop import InvertedEnvironment, InvertedLoop, LoopEnded
from measurement import Limits, Measurement
from own_loop import OwnLoop
from padded_rows import PaddedRows, PaddedSystem
from systems import WORKS, Work

HERE = Path(__file__).parent
SEPARATE = {"rl4sys": ("peer_rl4sys", "Rl4sys"), "rllib": ("peer_rllib", "Rllib")}
"""Modules and classes of those that train in processes of their own: deciders with `kill_trainer` and `close`."""
LOOPS = {
    "rl4sys": ("own_rl4sys", "Rl4sysLoop"),
    "sb3": ("peer_sb3", "Sb3"),
    "torchrl": ("peer_torchrl", "Torchrl"),
    "cleanrl": ("peer_cleanrl", "Cleanrl"),
    "rllib": ("own_rllib", "RllibLoop"),
}
"""Those that own a loop: `train` until the environment ends it, `done` reports."""
SOURCES = {
    ("rllib", False): ["peer_rllib", "rllib_trainer", "rllib_config"],
    ("rllib", True): ["own_rllib", "rllib_config"],
}
"""Modules of user code, where there are several; by peer and whether it owns the loop."""
AFTER_KILL = 3_000
"""Decisions after a kill of the trainer, at least: more than a rollout."""


def lines_of(path: Path) -> int:
    """Statements of a module, without docstrings."""
    tree = ast.parse(path.read_text())
    return len({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and not _is_text(node)})


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def run(peer: str, work: Work, limits: Limits, seed: int, *, owns_loop: bool) -> dict[str, Any]:
    """The columns of a peer."""
    if peer == "bare":
        random = RandomDecider(int(work.action.n), seed)
        return ask(work, PaddedRows(random) if work.has_rows else random, limits, seed).values()
    module, name = (LOOPS if owns_loop or peer not in SEPARATE else SEPARATE)[peer]
    made = getattr(importlib.import_module(module), name)(work, seed)
    if owns_loop:
        values = _in_own_loop(made, peer, work, limits, seed)
    elif peer in SEPARATE:
        values = _beside_trainer(made, peer, work, limits, seed)
    else:
        values = _behind_inverted_loop(made, work, limits, seed)
    values["used"] /= values["decisions"]
    return values | {"lines": sum(lines_of(HERE / f"{each}.py") for each in SOURCES.get((peer, owns_loop), [module]))}


IN_PROCESS = {"recorded": 1.0, "bytes_per_decision": 0.0, "bytes_per_update": 0.0}


def _in_own_loop(made: Any, peer: str, work: Work, limits: Limits, seed: int) -> dict[str, Any]:
    """The library owns the loop, and the system is its environment. Training is part of the system's thread."""
    system, measured = work.make(), Measurement(limits)
    rows = PaddedSystem(system) if work.has_rows and peer != "rl4sys" else None
    cpu = time.process_time()
    with suppress(LoopEnded):
        made.train(OwnLoop(rows or system, measured, seed))
    values: dict[str, Any] = measured.values() | made.done() | IN_PROCESS
    values["trainer_cpu_us"] = 1e6 * (time.process_time() - cpu) / len(measured.act)
    return values | ({} if rows is None else {"absent": rows.absent / len(measured.act)})


def _behind_inverted_loop(made: Any, work: Work, limits: Limits, seed: int) -> dict[str, Any]:
    """The system asks; the library trains in a thread of the system's process."""
    loop = InvertedLoop(lambda loop: made.train(InvertedEnvironment(loop, work.observation, work.action)))
    values, measured, cpu = _asked(loop, work, limits, seed, pads=work.has_rows)
    loop.close()
    values["trainer_cpu_us"] = 1e6 * (cpu - (measured.client_cpu or 0.0)) / len(measured.act)
    return values | made.done() | IN_PROCESS


def _beside_trainer(made: Any, peer: str, work: Work, limits: Limits, seed: int) -> dict[str, Any]:
    """The system asks; the trainer is a process of its own, which is killed at the end."""
    pads = work.has_rows and peer != "rl4sys"
    values, measured, cpu = _asked(made, work, limits, seed, pads=pads)
    after = Limits(max(AFTER_KILL, len(measured.act) // 10), limits.seconds)
    values["after_kill"] = _after_kill(made, lambda: ask(work, PaddedRows(made) if pads else made, after, seed + 1))
    done = made.close()
    trainer = done.pop("trainer_cpu") + cpu - (measured.client_cpu or 0.0)
    return values | done | {"trainer_cpu_us": 1e6 * trainer / len(measured.act)}


def _asked(
    decider: Decider, work: Work, limits: Limits, seed: int, *, pads: bool
) -> tuple[dict[str, Any], Measurement, float]:
    """The columns of a system that asks, what it measured, and CPU seconds of its process."""
    rows = PaddedRows(decider) if pads else None
    cpu = time.process_time()
    measured = ask(work, rows or decider, limits, seed)
    own = time.process_time() - cpu
    values: dict[str, Any] = measured.values()
    return values | ({} if rows is None else {"absent": rows.absent / len(measured.act)}), measured, own


def _after_kill(made: Any, continued: Callable[[], Measurement]) -> dict[str, Any]:
    """What becomes of the system after a kill -9 of the trainer."""
    made.kill_trainer()
    try:
        after = continued()
    except (OSError, LoopEnded) as error:
        # Not its text: that of RLlink has the whole rollout.
        return {"problem": type(error).__name__}
    return {"decisions": len(after.act), "longest_stall_ms": max(after.act) / 1e6}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=["bare", *LOOPS], required=True)
    parser.add_argument("--work", choices=WORKS, required=True)
    parser.add_argument("--decisions", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop earlier, after so many seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--own-loop", action="store_true", help="let the library own the loop")
    asked = parser.parse_args()
    limits = Limits(asked.decisions, asked.seconds)
    print(json.dumps(run(asked.peer, WORKS[asked.work], limits, asked.seed, owns_loop=asked.own_loop)))

"""Runs one peer in one work, in the peer's own environment; prints a line of JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inverted_loop import LoopEnded
from systems import WORKS, Measurement, PaddedRows, RandomDecider

HERE = Path(__file__).parent
PEERS = {"rl4sys": "Rl4sys", "sb3": "Sb3", "torchrl": "Torchrl", "cleanrl": "Cleanrl", "rllib": "Rllib"}
"""Classes of the modules `peer_NAME`: `loop` decides, `close` ends and reports."""

AFTER_KILL = 3_000
"""Decisions after a kill of the trainer, at least: more than a rollout."""


def lines_of(path: Path) -> int:
    """Lines of code: without blank lines, comments and docstrings."""
    import ast

    tree = ast.parse(path.read_text())
    return len({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and not _is_text(node)})


def _is_text(node: Any) -> bool:
    import ast

    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def run(peer: str, work_name: str, decisions: int, seed: int, *, kill: bool) -> dict[str, Any]:
    """The columns of a peer."""
    work = WORKS[work_name]
    if peer == "bare":
        random = RandomDecider(int(work.action.n), seed)
        return work.run(PaddedRows(random) if work.has_rows else random, decisions, seed).values()
    made = getattr(importlib.import_module(f"peer_{peer}"), PEERS[peer])(work, seed)
    rows = PaddedRows(made.loop) if work.has_rows and peer != "rl4sys" else None
    decider = rows or made.loop
    cpu = time.process_time()
    measured = work.run(decider, decisions, seed)
    own = time.process_time() - cpu
    values: dict[str, Any] = measured.values()
    if rows is not None:
        values["absent"] = rows.absent / decisions
    if kill:
        values["after_kill"] = _after_kill(made, lambda: work.run(decider, max(AFTER_KILL, decisions // 10), seed + 1))
    done = made.close()
    trainer = done.pop("trainer_cpu", 0.0) + own - measured.client_cpu
    sources = [HERE / f"peer_{peer}.py", *HERE.glob(f"{peer}_trainer.py")]
    return (
        values
        | done
        | {
            "trainer_cpu_us": 1e6 * trainer / decisions,
            "lines": sum(map(lines_of, sources)),
        }
    )


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
    parser.add_argument("--peer", choices=["bare", *PEERS], required=True)
    parser.add_argument("--work", choices=WORKS, required=True)
    parser.add_argument("--decisions", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", action="store_true", help="kill -9 the trainer at the end, and continue")
    asked = parser.parse_args()
    print(json.dumps(run(asked.peer, asked.work, asked.decisions, asked.seed, kill=asked.kill)))

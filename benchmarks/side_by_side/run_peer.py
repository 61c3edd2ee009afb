"""Runs one peer in one work, in the peer's own environment; prints a line of JSON."""

from __future__ import annotations

import argparse
import importlib
import json
import time
from pathlib import Path
from typing import Any

from systems import ACTION, WORKS, RandomDecider

HERE = Path(__file__).parent
PEERS = {"rl4sys": "Rl4sys", "sb3": "Sb3", "torchrl": "Torchrl"}
"""Classes of the modules `peer_NAME`: `loop` decides, `close` ends and reports."""


def lines_of(path: Path) -> int:
    """Lines of code: without blank lines, comments and docstrings."""
    import ast

    tree = ast.parse(path.read_text())
    return len({node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt) and not _is_text(node)})


def _is_text(node: Any) -> bool:
    import ast

    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def run(peer: str, work: str, decisions: int, seed: int, *, kill: bool) -> dict[str, Any]:
    """The columns of a peer."""
    if peer == "bare":
        return WORKS[work](RandomDecider(int(ACTION.n), seed), decisions, seed).values()
    made = getattr(importlib.import_module(f"peer_{peer}"), PEERS[peer])(seed)
    cpu = time.process_time()
    measured = WORKS[work](made.loop, decisions, seed)
    own = time.process_time() - cpu
    values: dict[str, Any] = measured.values()
    if kill:
        made.kill_trainer()
        after = WORKS[work](made.loop, decisions // 10, seed + 1)
        values["after_kill"] = {"decisions": len(after.act), "longest_stall_ms": max(after.act) / 1e6}
    done = made.close()
    trainer = done.pop("trainer_cpu", 0.0) + own - measured.client_cpu
    return (
        values
        | done
        | {
            "trainer_cpu_us": 1e6 * trainer / decisions,
            "lines": lines_of(HERE / f"peer_{peer}.py"),
        }
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", choices=["bare", *PEERS], required=True)
    parser.add_argument("--work", choices=WORKS, required=True)
    parser.add_argument("--decisions", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kill", action="store_true", help="kill -9 the trainer at the end, and continue")
    asked = parser.parse_args()
    print(json.dumps(run(asked.peer, asked.work, asked.decisions, asked.seed, kill=asked.kill)))

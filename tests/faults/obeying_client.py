"""A client that decides all the time, and prints why the policy is off, or an empty line, whenever that changes."""

from __future__ import annotations

import json
import sys
import threading

import rl4sys

FALLBACK = 1


def main() -> None:
    fell_back: list[bool] = []

    def fallback(observation: object) -> int:
        fell_back.append(True)
        return FALLBACK

    agent = rl4sys.connect(json.loads(sys.argv[1]), fallback=fallback)
    shown: str | None = None
    episode, pause = agent.episode(), threading.Event()
    while not pause.wait(0.005):
        fell_back.clear()
        before = agent.health().off
        action = episode.act([0.0, 0.0, 0.0])
        off = agent.health().off
        if before == off != shown:
            assert bool(fell_back) == bool(off)
            assert not off or action == FALLBACK
            shown = off
            print(off, flush=True)


if __name__ == "__main__":
    main()

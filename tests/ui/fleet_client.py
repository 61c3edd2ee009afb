"""A client that acts in short episodes until its standard input ends, or it is killed."""

from __future__ import annotations

import json
import random
import sys
import threading

import rl4sys

_STEPS = 20
_PAUSE = 0.01


def main() -> None:
    settings = json.loads(sys.argv[1])
    chance, has_ended = random.Random(settings["client_id"]), threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), has_ended.set()), daemon=True).start()
    with rl4sys.connect(settings, fallback=lambda observation: 0) as agent:
        print("connected", flush=True)
        while not has_ended.is_set():
            episode = agent.episode()
            for _ in range(_STEPS):
                observation = [chance.gauss(0, 1) for _ in range(3)]
                episode.reward(float(episode.act(observation) == (observation[0] > 0)))
                has_ended.wait(_PAUSE)
            episode.end([0.0, 0.0, 0.0])


if __name__ == "__main__":
    main()

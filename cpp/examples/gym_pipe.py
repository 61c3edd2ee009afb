"""LunarLander-v3 for a program in another language: actions come on standard input, answers go to standard output.

Run `python gym_pipe.py COUNT SEED` with COUNT simulators. It answers with COUNT records, once at the start and then
after every COUNT actions of one byte each; it ends when the input does. A record is 18 float32 in the machine's order:

    reward, ending (0 continues, 1 terminated, 2 truncated), 8 observed after the action, 8 to act on next

The last two are the same unless an episode ended: then the second is the first observation of the next one.
"""

from __future__ import annotations

import signal
import sys

import gymnasium
import numpy as np


def main() -> None:
    """Step all simulators in turn until the pipe is closed."""
    # Ctrl-C is for the program at the other end, which then closes the pipe.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    simulators = [gymnasium.make("LunarLander-v3") for _ in range(count)]
    records = np.zeros((count, 18), np.float32)
    for number, simulator in enumerate(simulators):
        records[number, 10:], _ = simulator.reset(seed=seed + number)
    send(records)
    while len(actions := sys.stdin.buffer.read(count)) == count:
        for record, simulator, action in zip(records, simulators, actions, strict=True):
            observation, reward, terminated, truncated, _ = simulator.step(action)
            record[0] = reward
            record[1] = 1 if terminated else 2 if truncated else 0
            record[2:10] = observation
            record[10:], _ = simulator.reset() if terminated or truncated else (observation, None)
        send(records)


def send(records: np.ndarray) -> None:
    """Write what there is at once."""
    sys.stdout.buffer.write(records.tobytes())
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

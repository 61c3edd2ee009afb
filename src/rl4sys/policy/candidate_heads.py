"""Heads that choose one of the first k choices, where an observation says how many candidates there are."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from rl4sys.experience import Array, Arrays
from rl4sys.policy.candidates import real_rows
from rl4sys.policy.vector_heads import Decide

_exp, _log = math.exp, math.log
_FEW = 32
"""Up to this many choices, plain Python decides faster than numpy does."""


class NoAllowedAction(ValueError):
    """An action mask forbids every choice, or there is no candidate."""


def nothing_allowed() -> NoAllowedAction:
    """The error, with what to do."""
    return NoAllowedAction(
        "The action mask allows no action in at least one row. Allow one choice, or end the episode."
    )


Row = Callable[[Array, "Array | None", Array], "tuple[int, float]"]
"""Decides for one row: the scores of its candidates, their mask, the noise; a choice and its log-probability."""


def counted(choose: Row, scores: Array, mask: Array | None, count: Array, *, notes: bool) -> Decide:
    """The head that applies `choose` to the candidates of each row; `notes`: whether it records log-probabilities."""
    rows, most = scores.shape

    def decide(noise: Array) -> tuple[Array, Arrays]:
        chosen, noted = np.empty(rows, np.int64), np.empty(rows, np.float32)
        for row in range(rows):
            k = real_rows(count[row], most)
            allowed = None if mask is None else mask[row, :k]
            if k == 0:
                raise NoAllowedAction("There are no candidates to choose from. Pass at least one, or end the episode.")
            if allowed is not None and not allowed.any():
                raise nothing_allowed()
            chosen[row], noted[row] = choose(scores[row, :k], allowed, noise[row])
        return chosen, {"log_prob": noted} if notes else {}

    return decide


def sample(scores: Array, allowed: Array | None, noise: Array) -> tuple[int, float]:
    """Inverse-CDF sampling, as for choices without a count."""
    uniform = noise.item()
    if len(scores) > _FEW:
        logits = (scores if allowed is None else np.where(allowed, scores, -np.inf)).astype(np.float64)
        logits -= logits.max()
        cumulative = np.add.accumulate(np.exp(logits))
        total = cumulative[-1]
        # NaN compares as false: the first choice, with a log-probability that is NaN, too.
        choice = int(np.searchsorted(cumulative, total * uniform, "right")) if total == total else 0
        return choice, float(logits[choice] - np.log(total))
    listed = scores.tolist()
    if allowed is not None:
        listed = [score if ok else -math.inf for score, ok in zip(listed, allowed.tolist(), strict=True)]
    return sample_listed(listed, uniform)


def sample_listed(scores: list[float], uniform: float) -> tuple[int, float]:
    """A choice and its log-probability."""
    peak = max(scores)
    total, cumulative = 0.0, []
    for score in scores:
        total += _exp(score - peak)
        cumulative.append(total)
    # Weights or observations that overflow give NaN, which compares as false: the first choice, as in a batch.
    action = bisect_right(cumulative, total * uniform) if total == total else 0
    return action, scores[action] - peak - _log(total)


def best(scores: Array, allowed: Array | None, noise: Array) -> tuple[int, float]:
    """The first of the highest scores that are allowed."""
    return int((scores if allowed is None else np.where(allowed, scores, -np.inf)).argmax()), 0.0


def epsilon_greedy(epsilon: Array) -> Row:
    """With probability ε a uniformly random allowed candidate; else the best one."""

    def choose(scores: Array, allowed: Array | None, noise: Array) -> tuple[int, float]:
        if not noise[0] < epsilon[0]:
            return best(scores, allowed, noise)
        # In float64 the product is exact, so its whole part is the same in every language.
        if allowed is None:
            return int(float(noise[1]) * len(scores)), 0.0
        return int(np.flatnonzero(allowed)[int(float(noise[1]) * allowed.sum())]), 0.0

    return choose

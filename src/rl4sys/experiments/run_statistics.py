"""Statistics of a run: recent episodes, the last losses, the best evaluation."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from rl4sys.environments import SUCCESS, EpisodeSummary
from rl4sys.learning import Evaluation, Learner
from rl4sys.state import State, require

_RECENT_EPISODES = 100


class RunStatistics:
    """Collects episodes, losses and evaluations, and turns them into metrics."""

    def __init__(self) -> None:
        self.best: float | None = None
        """Mean return of the best evaluation."""
        self.best_step: int | None = None
        """When that was."""
        self.evaluation: float | None = None
        """Mean return of the last one."""
        self._recent: deque[tuple[float, int]] = deque(maxlen=_RECENT_EPISODES)
        self._recent_info: deque[Mapping[str, float]] = deque(maxlen=_RECENT_EPISODES)
        self._episodes = 0
        self._learned: Mapping[str, float] = {}

    def note_turn(self, episodes: Iterable[EpisodeSummary], learned: Mapping[str, float]) -> None:
        """Take note of the episodes that ended in one turn, and of what was learned, if anything was."""
        for episode in episodes:
            self._recent.append((episode.return_, episode.length))
            self._episodes += 1
            if episode.info:
                self._recent_info.append(episode.info)
        self._learned = learned or self._learned

    def note_evaluation(self, outcome: Evaluation, step: int) -> bool:
        """Take note of an evaluation; true if it is the best so far."""
        self.evaluation = outcome.mean
        if not outcome.mean > (-math.inf if self.best is None else self.best):
            return False
        self.best, self.best_step = outcome.mean, step
        return True

    def metrics(self, learner: Learner) -> dict[str, float]:
        """The metrics of a record."""
        metrics = {f"train/{name}": value for name, value in self._learned.items()}
        if self._recent:
            metrics["rollout/return"] = sum(r for r, _ in self._recent) / len(self._recent)
            metrics["rollout/length"] = sum(n for _, n in self._recent) / len(self._recent)
        metrics |= info_metrics("rollout", self._recent_info)
        metrics |= {f"buffer/{name}": float(count) for name, count in learner.buffer.counts.items()}
        return metrics | {"episodes": float(self._episodes), "version": float(learner.store.latest)}

    def state(self) -> State:
        """Everything that later metrics depend on."""
        return {
            "recent": [[return_, length] for return_, length in self._recent],
            "episodes": self._episodes,
            "best": self.best,
            "best_step": self.best_step,
            "evaluation": self.evaluation,
            "learned": dict(self._learned),
        } | ({"info": [dict(info) for info in self._recent_info]} if self._recent_info else {})

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue where `state` was taken."""
        # Only runs whose environment puts numbers into `info` have these.
        state = {"info": [], **state}
        require(state, "recent", "episodes", "best", "best_step", "evaluation", "learned", "info")
        self._recent_info.clear()
        self._recent_info.extend(state["info"])
        self._recent.clear()
        self._recent.extend((return_, length) for return_, length in state["recent"])
        self._episodes, self._learned = state["episodes"], state["learned"]
        self.best, self.best_step, self.evaluation = state["best"], state["best_step"], state["evaluation"]


def evaluation_metrics(outcome: Evaluation) -> dict[str, float]:
    """The metrics of an evaluation."""
    return {
        "evaluation/return": outcome.mean,
        "evaluation/deviation": outcome.deviation,
        "evaluation/length": sum(outcome.lengths) / len(outcome.lengths),
        **info_metrics("evaluation", outcome.info),
    }


def info_metrics(section: str, episodes: Collection[Mapping[str, float]]) -> dict[str, float]:
    """Means over episodes of what their environment reported in `info`; the share of successes has its own name."""
    values: dict[str, list[float]] = {}
    for info in episodes:
        for name, value in info.items():
            values.setdefault(f"{section}/success_rate" if name == SUCCESS else f"{section}/info/{name}", []).append(
                value
            )
    return {name: sum(found) / len(found) for name, found in values.items()}

"""How much randomness is worth: fixed, or learned so that the policy keeps a wanted entropy."""

from __future__ import annotations

import math

from rl4sys.networks import NonFiniteUpdate
from rl4sys.state import State, require

_FIRST_DECAY, _SECOND_DECAY, _EPSILON = 0.9, 0.999, 1e-8


class Temperature:
    """A temperature that falls while there is more entropy than wanted and rises while there is less, or stays.

    It is learned as its logarithm, so that it stays positive (arXiv:1812.05905, sec. 5), by Adam on a plain number:
    the entropy leaves the device once per update anyway, with the metrics.
    """

    def __init__(self, first: float, lr: float | None) -> None:
        """Without a step size it stays as it is."""
        self.value = first
        self._lr = lr
        self._log = math.log(first) if lr is not None else 0.0
        self._steps, self._first, self._second = 0, 0.0, 0.0
        self._actor_facts = [0.0, 0.0]

    def metrics(self, facts: list[float], *, adapts: bool) -> dict[str, float]:
        """What an update reports. Facts: loss, value and, where the actor moved, its loss, entropy and surplus."""
        reported = {"critic_loss": facts[0], "q": facts[1], "temperature": self.value}
        if adapts:
            self._actor_facts = facts[2:4]
            self.adapt(facts[4])
        return reported | dict(zip(("actor_loss", "entropy"), self._actor_facts, strict=True))

    def adapt(self, surplus: float) -> None:
        """One step along the gradient of log α · (entropy − wanted entropy); `surplus` is that mean difference."""
        if not math.isfinite(surplus):
            raise NonFiniteUpdate(f"The entropy that is more than wanted is {surplus}.", ("temperature",))
        if self._lr is None:
            return
        self._steps += 1
        self._first += (1.0 - _FIRST_DECAY) * (surplus - self._first)
        self._second += (1.0 - _SECOND_DECAY) * (surplus * surplus - self._second)
        first = self._first / (1.0 - _FIRST_DECAY**self._steps)
        second = self._second / (1.0 - _SECOND_DECAY**self._steps)
        self._log -= self._lr * first / (math.sqrt(second) + _EPSILON)
        self.value = math.exp(self._log)

    def state(self) -> State:
        """The logarithm, the optimizer, and what was last reported of the actor."""
        return {
            "log_alpha": self._log,
            "adam": [self._steps, self._first, self._second],
            "actor_facts": list(self._actor_facts),
        }

    def restore(self, state: State) -> None:
        """Continue exactly where `state` was taken."""
        require(state, "log_alpha", "adam", "actor_facts")
        self._log = state["log_alpha"]
        self._steps, self._first, self._second = state["adam"]
        self._actor_facts = list(state["actor_facts"])
        if self._lr is not None:
            self.value = math.exp(self._log)

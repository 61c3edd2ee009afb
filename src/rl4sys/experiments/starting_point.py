"""Where a new run takes its first weights from: another run, one of its checkpoints, or a policy file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rl4sys.learning import KnownWeights, Learner, weights_of
from rl4sys.policy import layout_of

if TYPE_CHECKING:
    from rl4sys.experiments.policies.trained_policy import TrainedPolicy


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """What to take over from where. Steps, experience and optimizers are those of a new run."""

    source: str
    """A run, a checkpoint, a policy file or a learner directory of a server."""
    parts: tuple[str, ...] = ()
    """Names of tensors, or their beginnings, such as `actor` or `critic.0`; all weights that both have if empty."""
    normalisers: bool = False
    """Whether to take over the statistics of observations and rewards."""
    best: bool = True
    """Whether to take the best checkpoint of a run, and not the newest."""

    @classmethod
    def from_values(cls, values: Mapping[str, Any] | None) -> StartingPoint | None:
        """The one that `dataclasses.asdict` described, after it came through JSON."""
        return None if values is None else cls(**{**values, "parts": tuple(values["parts"])})

    def load(self) -> LoadedStart:
        """Read it, so that what is missing is refused before there is a run."""
        # Imported here: with it comes the server, which a process that trains does not need.
        from rl4sys.experiments.policies.trained_policy import find_policy

        return LoadedStart(self, find_policy(self.source, best=self.best))


@dataclass(frozen=True, slots=True)
class LoadedStart:
    """A starting point that was read."""

    start: StartingPoint
    trained: TrainedPolicy

    def begin(self, learner: Learner) -> dict[str, Any]:
        """Give its weights to a learner, and return what the manifest of the run says about its origin."""
        made = learner.start_from(_known(self.trained), self.start.parts, normalisers=self.start.normalisers)
        return {
            "source": str(self.trained.origin),
            "step": self.trained.policy.steps,
            "version": self.trained.policy.version,
            "sha256": self.trained.policy.sha256,
            "parts": list(self.start.parts),
            "normalisers": self.start.normalisers,
            "copied": list(made.copied),
            "left": list(made.left),
        }


def _known(trained: TrainedPolicy) -> KnownWeights:
    training, policy = trained.training, trained.policy
    if training is None:
        tensors = layout_of(policy.explore.program).views(policy.weights)
        return KnownWeights(dict(tensors), steps=policy.steps)
    training.algorithm.train_state.restore(training.state)
    tensors, targets = weights_of(training.algorithm.train_state)
    return KnownWeights(tensors, targets, training.observations, training.rewards, policy.steps)

from __future__ import annotations

import numpy as np
import pytest

from rl4sys.experience import Array
from rl4sys.learning import Diverged, Learner
from rl4sys.replay import OnceFresh, TrajectoryBuffer

from .fakes import RecordingAlgorithm, experience


class Exploding(RecordingAlgorithm):
    """Its weights are not finite after the second update."""

    def policy_weights(self) -> Array:
        return np.array([1.0, np.inf if len(self.batches) > 1 else 0.0], np.float32)


def test_weights_that_are_no_longer_finite_are_not_published() -> None:
    learner = Learner(Exploding(), TrajectoryBuffer(OnceFresh(12, 2)))
    learner.learn(experience(0))
    with pytest.raises(Diverged, match=r"after update 2 at step 24\. Lower algorithm\.lr .* are intact\.$"):
        learner.learn(experience(1))
    assert learner.store.latest == 1
    assert np.isfinite(learner.store.newest.blob).all()

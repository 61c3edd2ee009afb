from __future__ import annotations

from tests.server.learners.test_held_data import learner as learner

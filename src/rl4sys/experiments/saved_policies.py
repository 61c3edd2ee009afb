"""The policies of a run that can act without the rest of it: the best and the latest."""

from __future__ import annotations

import shutil

from rl4sys.environments import ENVIRONMENTS, EnvironmentConfig
from rl4sys.experiments.run_directory import RunDirectory
from rl4sys.learning import Learner
from rl4sys.policy import PortablePolicy
from rl4sys.policy.portable_policy import SUFFIX

BEST, LATEST = "best", "latest"


def save_policy(directory: RunDirectory, learner: Learner, environment: EnvironmentConfig, name: str) -> None:
    """Write the newest policy of a learner under a name."""
    newest, policies = learner.store.newest, learner.algorithm.policies
    described = ENVIRONMENTS.dump(environment)
    policy = PortablePolicy(policies.explore, policies.exploit, newest.blob, newest.number, learner.steps, described)
    with directory.writing(learner.steps):
        policy.write(directory.policies / f"{name}{SUFFIX}")
        # Before version 0.2 a policy was a directory of this name; what it holds is out of date now.
        shutil.rmtree(directory.policies / name, ignore_errors=True)


def remove_later_policies(directory: RunDirectory, step: int) -> None:
    """Remove policies of steps after this one, which belong to an abandoned history."""
    for name in (BEST, LATEST):
        path = directory.policies / f"{name}{SUFFIX}"
        if path.is_file() and PortablePolicy.read(path).steps > step:
            path.unlink()

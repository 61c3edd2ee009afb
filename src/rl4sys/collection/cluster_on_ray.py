"""A Ray cluster to collect on: joined or started here, and left when the run ends."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import ray
from ray.exceptions import AuthenticationError

from rl4sys.collection.cluster_address import ClusterUnfit, require_cluster
from rl4sys.collection.collector_on_ray import RaySource
from rl4sys.collection.pipeline import PipelineSetup, PooledSource, ShareSource
from rl4sys.collection.source import Collected
from rl4sys.cores import usable_cores
from rl4sys.state import State
from rl4sys.weights import Version


class ClusterSource:
    """The samplers of a run on a cluster, in the order of a pooled source."""

    def __init__(self, setup: PipelineSetup, processes: int, plugins: Mapping[str, str], address: str | None) -> None:
        self._is_joined = not ray.is_initialized()
        if self._is_joined:
            join_cluster(address)
        make = partial(RaySource, plugins=plugins)
        try:
            self._source: ShareSource = make(setup) if processes == 1 else PooledSource(setup, processes, make)
        except BaseException:
            self._leave()
            raise

    def collect(self, newest: Version) -> Collected:
        """Hand over the finished rollouts, having started the next ones."""
        return self._source.collect(newest)

    def state(self) -> State:
        """Equal to that of the same processes on this machine, which can continue from it, too."""
        return self._source.state()

    def restore(self, state: State) -> Sequence[str]:
        """Continue where `state` was taken; returns why that is not exact, if it is not."""
        return self._source.restore(state)

    def close(self) -> None:
        """End the samplers and leave the cluster; one that was started here ends."""
        self._source.close()
        self._leave()

    def _leave(self) -> None:
        if self._is_joined:
            ray.shutdown()


def join_cluster(address: str | None) -> None:
    """Join a cluster, or start Ray on this machine, without a word of Ray on the screen."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        # "local", since Ray would otherwise join a cluster that it finds on this machine.
        ray.init(address="local", num_cpus=len(usable_cores()), include_dashboard=False, **quiet)
        return
    require_cluster(address)
    try:
        ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, AuthenticationError) as error:
        if _asks_for_token(error):
            raise ClusterUnfit(
                f"The Ray cluster at {address} asks for a token, and was given none or another. Set "
                "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN_PATH, the file with the token of the cluster."
            ) from error
        line = " ".join(str(error).split())
        advice = "Start one with `ray start --head`, or leave out --address to start Ray on this machine."
        raise ClusterUnfit(f"The Ray cluster at {address} cannot be joined: {line[:300]} {advice}") from error


def _asks_for_token(error: BaseException | None) -> bool:
    """Whether an error comes from a cluster that does not accept the token of this process."""
    while error is not None:
        if isinstance(error, AuthenticationError):
            return True
        error = error.__cause__
    return False

"""Checks the experiments that a server offers, in a process of its own: it needs torch, which the server does without.

`python -m rl4sys.server.service.experiment_check` reads JSON with plug-ins and serialized JoinRequests in hexadecimal,
and writes JSON with a problem by the name of its experiment; the name is empty for a plug-in that cannot be loaded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from rl4sys.algorithms import UnsuitableActions, UnsuitableNetwork
from rl4sys.config import ConfigError
from rl4sys.replay import UnsuitableBuffer
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.learner_config import build_learner, load_learner_plugins, resolve
from rl4sys.wire import decode_action
from rl4sys.wire.arrays import decode_arrays
from rl4sys.wire.generated import training_pb2


def problems(requests: Iterable[bytes], plugins: tuple[str, ...]) -> dict[str, str]:
    """The problem of each experiment that cannot be built, by name."""
    try:
        load_learner_plugins(plugins)
    except ConfigError as error:
        return {"": str(error)}
    found: dict[str, str] = {}
    for data in requests:
        request = training_pb2.JoinRequest.FromString(data)
        try:
            _build(request)
        except (ConfigError, UnsuitableActions, UnsuitableBuffer, UnsuitableNetwork) as error:
            found[request.client] = str(error)
    return found


def _build(request: training_pb2.JoinRequest) -> None:
    """Build the learner as far as the request describes it."""
    name, parameters = request.algorithm.name, json.loads(request.algorithm.parameters_json)
    config = resolve(name, parameters)
    if request.observation and request.HasField("action"):
        observation, action = decode_arrays("observation", request.observation), decode_action(request.action)
        build_learner(config, LearnerSetup(request.client, name, parameters, observation, action, 1))


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    answer = problems(map(bytes.fromhex, asked["requests"]), tuple(asked["plugins"]))
    json.dump(answer, sys.stdout)

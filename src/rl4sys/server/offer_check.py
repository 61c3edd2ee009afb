"""`python -m rl4sys.server.offer_check`: whether learners can be made from the experiments that a server offers.

It needs the algorithms, and so torch, which the serving process does without. It reads plug-ins and serialized
JoinRequests, in hexadecimal digits, and writes what is wrong by the name of the experiment, which is empty for a
plug-in that cannot be loaded; both are JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from rl4sys.algorithms import UnsuitableActions, UnsuitableNetwork
from rl4sys.config import ConfigError
from rl4sys.replay import UnsuitableBuffer
from rl4sys.server.learner_config import build_learner, resolve
from rl4sys.server.learner_plugins import load_learner_plugins
from rl4sys.server.setups import LearnerSetup
from rl4sys.wire import decode_action
from rl4sys.wire.arrays import decode_arrays
from rl4sys.wire.generated import training_pb2


def problems(requests: Iterable[bytes], plugins: tuple[str, ...]) -> dict[str, str]:
    """What is wrong with each experiment that is not right."""
    try:
        load_learner_plugins(plugins)
    except ConfigError as error:
        return {"": str(error)}
    found: dict[str, str] = {}
    for data in requests:
        request = training_pb2.JoinRequest.FromString(data)
        try:
            _try(request)
        except (ConfigError, UnsuitableActions, UnsuitableBuffer, UnsuitableNetwork) as error:
            found[request.client] = str(error)
    return found


def _try(request: training_pb2.JoinRequest) -> None:
    """Make the learner as far as it is described."""
    name, parameters = request.algorithm.name, json.loads(request.algorithm.parameters_json)
    config = resolve(name, parameters)
    if request.observation and request.HasField("action"):
        observation, action = decode_arrays("observation", request.observation), decode_action(request.action)
        build_learner(config, LearnerSetup(request.client, name, parameters, observation, action, 1))


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    answer = problems(map(bytes.fromhex, asked["requests"]), tuple(asked["plugins"]))
    json.dump(answer, sys.stdout)

"""`python -m rl4sys.server.offer_check`: whether learners can be made from the experiments that a server offers.

It needs the algorithms, and so torch, which the serving process does without. It reads a list of serialized
JoinRequests, in hexadecimal digits, and writes what is wrong by the name of the experiment; both are JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

from rl4sys.algorithms import UnsuitableActions, UnsuitableNetwork
from rl4sys.config import ConfigError
from rl4sys.replay import UnsuitableBuffer
from rl4sys.server.learner_config import build_learner, resolve
from rl4sys.server.setups import LearnerSetup
from rl4sys.wire import decode_action
from rl4sys.wire.arrays import decode_arrays
from rl4sys.wire.generated import training_pb2


def problems(requests: Iterable[bytes]) -> dict[str, str]:
    """What is wrong with each experiment that is not right."""
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
    json.dump(problems(bytes.fromhex(request) for request in json.load(sys.stdin)), sys.stdout)

"""From a JoinRequest to a learner that fits it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rl4sys.experience import ArraySpec
from rl4sys.policy import ActionSpec, PolicySpec
from rl4sys.server.failing import invalid, precondition, unavailable
from rl4sys.server.hosting import Condition, HostedLearner
from rl4sys.server.learners import Learners, learner_name
from rl4sys.server.limits import ServiceLimits
from rl4sys.server.setups import LearnerSetup
from rl4sys.wire import PROTOCOL, ContractViolation, FailureReason, decode_action, encode_policy, require_name
from rl4sys.wire.arrays import decode_arrays
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import policy_pb2, training_pb2


def find_learner(request: training_pb2.JoinRequest, learners: Learners, limits: ServiceLimits) -> HostedLearner:
    """The learner for a client: found and compared, or made. It is known by then what its policy is."""
    try:
        require_name("The client's name", request.client)
        if request.policy_id:
            require_name("The policy_id", request.policy_id)
        observation = decode_arrays("observation", request.observation)
        action = decode_action(request.action) if request.HasField("action") else None
    except ContractViolation as error:
        raise invalid(str(error)) from error
    if request.WhichOneof("method") == "experiment":
        raise CallFailed(
            Code.NOT_FOUND,
            f"This server offers no experiment '{request.experiment}', nor any other. Name an algorithm instead.",
        )
    parameters = _parameters(request, limits)
    name = learner_name(request.client, request.policy_id)
    learner = learners.find(name)
    if learner is None:
        if name in learners.problems:
            raise precondition(FailureReason.LEARNER_FAILED, learners.problems[name])
        learner = learners.find_or_make(_new_setup(name, request, parameters, observation, action, limits))
    _await_policy(learner, learners, limits)
    _require_same(learner, request, parameters, observation, action)
    return learner


def travelling_policy(request: training_pb2.JoinRequest, policy: PolicySpec) -> policy_pb2.PolicySpec | None:
    """The policy for the client's runtime; None if it has no runtime and will ask the server."""
    if not request.ops:
        return None
    message = encode_policy(policy)
    missing = sorted({op.kind for op in policy.program.ops} - set(request.ops))
    if message.head.kind not in request.heads:
        missing.append(f"{policy.head.kind} (head)")
    if missing:
        raise precondition(
            FailureReason.MISSING_OPS,
            f"The policy needs {', '.join(missing)}, which this client lacks. Upgrade the client, choose another "
            f"network, or join without ops and decide with Act.",
        )
    return message


def agreed_protocol(request: training_pb2.JoinRequest) -> int:
    """The newest protocol that both sides speak."""
    if request.protocol < 1:
        raise precondition(
            FailureReason.PROTOCOL,
            f"The client speaks protocol {request.protocol}; this server speaks 1 to {PROTOCOL}. Upgrade the client.",
        )
    return min(int(request.protocol), PROTOCOL)


def _parameters(request: training_pb2.JoinRequest, limits: ServiceLimits) -> Mapping[str, Any]:
    text = request.algorithm.parameters_json
    if len(text.encode()) > limits.parameters_bytes:
        raise invalid(f"The parameters have {len(text)} characters; at most {limits.parameters_bytes} bytes are taken.")
    if not text:
        return {}
    try:
        parameters = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise invalid(f"The parameters are no JSON: {error}. Send the text of one JSON object.") from error
    if not isinstance(parameters, dict):
        raise invalid(f"The parameters are a {type(parameters).__name__}; expected one JSON object.")
    return parameters


def _new_setup(
    name: str,
    request: training_pb2.JoinRequest,
    parameters: Mapping[str, Any],
    observation: tuple[ArraySpec, ...],
    action: ActionSpec | None,
    limits: ServiceLimits,
) -> LearnerSetup:
    if request.WhichOneof("method") is None or not request.algorithm.name:
        raise invalid(f"There is no learner '{name}' yet, and the request names no algorithm. Name one, such as PPO.")
    if not observation or action is None:
        raise invalid(f"There is no learner '{name}' yet. To make it, say what the client observes and can do.")
    return LearnerSetup(name, request.algorithm.name, parameters, observation, action, limits.max_segment_steps)


def _await_policy(learner: HostedLearner, learners: Learners, limits: ServiceLimits) -> None:
    known = learner.wait_until_known(limits.join_seconds)
    match learner.condition:
        case Condition.REFUSED:
            learners.forget(learner)
            raise invalid(f"The learner '{learner.name}' cannot be made: {learner.problem}")
        case Condition.FAILED:
            raise precondition(
                FailureReason.LEARNER_FAILED,
                f"The learner '{learner.name}' FAILED: {learner.problem} Its log is kept. Repair the cause and restart "
                f"the server, or choose another policy_id.",
            )
    if not known:
        raise unavailable(f"The learner '{learner.name}' is still being made or restored. Join again.")


def _require_same(
    learner: HostedLearner,
    request: training_pb2.JoinRequest,
    parameters: Mapping[str, Any],
    observation: tuple[ArraySpec, ...],
    action: ActionSpec | None,
) -> None:
    setup = learner.setup
    if observation and observation != setup.observation:
        raise _other(
            learner, "observes", [str(spec) for spec in setup.observation], [str(spec) for spec in observation]
        )
    if action is not None and action != setup.action:
        raise _other(learner, "does", setup.action, action)
    if request.WhichOneof("method") is None:
        return
    asked = request.algorithm.name
    if asked.casefold() == setup.algorithm.casefold() and parameters == setup.parameters:
        return
    try:
        resolved = learner.resolve(asked, parameters)
    except (RuntimeError, TimeoutError) as error:
        raise unavailable(f"{error} Join again.") from error
    if resolved.problem:
        raise invalid(resolved.problem)
    if resolved.config != learner.config:
        raise _other(learner, "learns with", *_differences(json.loads(learner.config), json.loads(resolved.config)))


def _other(learner: HostedLearner, verb: str, has: object, asked: object) -> CallFailed:
    return precondition(
        FailureReason.OTHER_LEARNER,
        f"The learner '{learner.name}' {verb} {has}; the client asked for {asked}. "
        f"Make them equal, or choose another policy_id (or client name) for another learner.",
    )


def _differences(has: Mapping[str, Any], asked: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings in which two configs differ, by dotted names."""
    mine, theirs = _flat(has), _flat(asked)
    names = sorted(name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name))
    return {name: mine.get(name) for name in names}, {name: theirs.get(name) for name in names}


def _flat(settings: Mapping[str, Any], lead: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{lead}{name}.") if isinstance(value, Mapping) else {lead + name: value}
    return flat

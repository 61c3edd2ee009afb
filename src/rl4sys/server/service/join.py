"""The Join call: finds or creates the learner that a request asks for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rl4sys.experience import ArraySpec
from rl4sys.policy import ActionSpec, PolicySpec
from rl4sys.server.access.caller import Caller
from rl4sys.server.call_errors import draining, invalid, precondition, unavailable
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.learners import Learners
from rl4sys.server.options import ServiceLimits, ServiceOptions
from rl4sys.server.service.offered_experiments import OfferedExperiment
from rl4sys.wire import (
    PROTOCOL,
    ContractViolation,
    FailureReason,
    SegmentFormat,
    decode_action,
    encode_policy,
    require_name,
)
from rl4sys.wire.arrays import decode_arrays
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import experience_pb2, policy_pb2, training_pb2
from rl4sys.wire.port_range import learner_name

_STARTING_RETRY_MS = 1_000

_WITH_CHANCE = "latent"
"""Clients that have this op know chance and the memory of actions, too, which came with it and are not listed."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a client asks for, directly or by the name of an experiment."""

    algorithm: str
    """Empty for the algorithm of the existing learner, or for the default experiment."""
    parameters: Mapping[str, Any]
    observation: tuple[ArraySpec, ...]
    action: ActionSpec | None
    experiment: str = ""
    may_differ: bool = False
    """Whether the learner was made from this experiment, and keeps its settings though the experiment was changed."""

    @property
    def source(self) -> str:
        """Where it comes from, for messages."""
        return f"the experiment '{self.experiment}'" if self.experiment else "the client"


def find_learner(
    request: training_pb2.JoinRequest, learners: Learners, options: ServiceOptions, caller: Caller
) -> HostedLearner:
    """The learner for a client: found and compared, or created. Its policy is known when this returns."""
    name = learner_name(request.client, request.policy_id)
    options.part.require_own(name)
    learner = learners.find(name)
    wanted = _wanted(request, options, None if learner is None else learner.setup)
    if learner is None:
        if name in learners.problems:
            raise precondition(FailureReason.LEARNER_FAILED, learners.problems[name])
        learner = learners.find_or_make(_new_setup(name, wanted, options, caller))
    _await_policy(learner, learners, options.limits)
    _require_same(learner, wanted, learners, options.limits)
    return learner


def policy_for_client(request: training_pb2.JoinRequest, policy: PolicySpec) -> policy_pb2.PolicySpec | None:
    """The policy for the client's runtime; None if it has no runtime and will call Act."""
    if not request.ops:
        return None
    if missing := _missing(request, policy):
        raise precondition(
            FailureReason.MISSING_OPS,
            f"The policy needs {', '.join(missing)}, which this client lacks: set decide: server or upgrade it.",
        )
    return encode_policy(policy)


def exploit_for_client(request: training_pb2.JoinRequest, policy: PolicySpec | None) -> policy_pb2.PolicySpec | None:
    """The exploit policy; None if the client's runtime cannot decide with it."""
    if policy is None or not request.ops:
        return None
    return None if _missing(request, policy) else encode_policy(policy)


def exploit_schema(exploits: bool, policy: PolicySpec | None) -> experience_pb2.SegmentSchema | None:
    """The arrays of the exploit policy's decisions, for a client that calls Act with it."""
    return SegmentFormat.of(policy).to_message() if exploits and policy is not None else None


def _missing(request: training_pb2.JoinRequest, policy: PolicySpec) -> list[str]:
    """What the client's runtime lacks."""
    missing = [f"the op {kind}" for kind in sorted({op.kind for op in policy.program.ops} - set(request.ops))]
    heads = {policy_pb2.HeadKind.Name(kind) for kind in request.heads if kind in policy_pb2.HeadKind.values()}
    if f"HEAD_KIND_{policy.head.kind.upper()}" not in heads:
        missing.append(f"the head {policy.head.kind}")
    knows_chance = _WITH_CHANCE in request.ops
    if policy.program.chance and not knows_chance:
        missing.append("chance in programs")
    if policy.head.action_register is not None and not knows_chance:
        missing.append("the memory of actions")
    return missing


def agreed_protocol(request: training_pb2.JoinRequest) -> int:
    """The newest protocol that both sides speak."""
    if request.protocol < 1:
        raise precondition(
            FailureReason.PROTOCOL,
            f"The client speaks protocol {request.protocol}; this server speaks 1 to {PROTOCOL}. Upgrade the client.",
        )
    return min(int(request.protocol), PROTOCOL)


def _wanted(request: training_pb2.JoinRequest, options: ServiceOptions, existing: LearnerSetup | None) -> _Wanted:
    try:
        require_name("The client's name", request.client)
        if request.policy_id:
            require_name("The policy_id", request.policy_id)
        observation = decode_arrays("observation", request.observation)
        action = decode_action(request.action) if request.HasField("action") else None
    except ContractViolation as error:
        raise invalid(str(error)) from error
    match request.WhichOneof("method"):
        case "experiment" if existing is not None and _is_of_experiment(existing, request.experiment, options):
            # Editing or renaming an experiment must not lock out the clients of learners that were made from it.
            offer = options.offers.find(request.experiment) if request.experiment in options.offers else None
            if offer is None:
                return _Wanted("", {}, observation, action, request.experiment, may_differ=True)
            return _Wanted(offer.algorithm, offer.parameters, observation, action, offer.name, may_differ=True)
        case "experiment":
            return _offered(options.offers.find(request.experiment), observation, action)
        case "algorithm":
            if not options.offers.allow_client_algorithms:
                raise options.offers.refuse_algorithm(request.algorithm.name)
            return _Wanted(request.algorithm.name, _parameters(request, options.limits), observation, action)
        case _:
            return _Wanted("", {}, observation, action)


def _is_of_experiment(setup: LearnerSetup, asked: str, options: ServiceOptions) -> bool:
    """Whether a client may mean the experiment that a learner was made from, under this name or an earlier one."""
    if setup.experiment:
        return setup.experiment == asked or setup.experiment not in options.offers
    # Learners of older servers do not say. One with the same algorithm is taken for it.
    return asked not in options.offers or options.offers.find(asked).algorithm.casefold() == setup.algorithm.casefold()


def _offered(offer: OfferedExperiment, observation: tuple[ArraySpec, ...], action: ActionSpec | None) -> _Wanted:
    """An experiment, completed with what the client specifies and the experiment leaves open."""
    for verb, has, said in (
        ("observes", _words(offer.observation), _words(observation)),
        ("does", offer.action, action),
    ):
        if has and said and has != said:
            raise precondition(
                FailureReason.OTHER_LEARNER,
                f"The experiment '{offer.name}' {verb} {has}; the client {verb} {said}. Make them equal, leave it to "
                f"the experiment, or ask for another one.",
            )
    return _Wanted(
        offer.algorithm, offer.parameters, offer.observation or observation, offer.action or action, offer.name
    )


def _words(observation: tuple[ArraySpec, ...]) -> list[str]:
    return [str(spec) for spec in observation]


def _parameters(request: training_pb2.JoinRequest, limits: ServiceLimits) -> Mapping[str, Any]:
    text = request.algorithm.parameters_json
    if len(text.encode()) > limits.parameters_bytes:
        raise invalid(
            f"The parameters have {len(text)} characters; at most {limits.parameters_bytes} bytes are accepted."
        )
    if not text:
        return {}
    try:
        parameters = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise invalid(f"The parameters are not JSON: {error}. Send the text of one JSON object.") from error
    if not isinstance(parameters, dict):
        raise invalid(f"The parameters are a {type(parameters).__name__}; expected one JSON object.")
    return parameters


def _new_setup(name: str, wanted: _Wanted, options: ServiceOptions, caller: Caller) -> LearnerSetup:
    if not wanted.algorithm and (default := options.offers.default) is not None:
        wanted = _offered(default, wanted.observation, wanted.action)
    if not wanted.algorithm:
        raise invalid(
            f"There is no learner '{name}' yet, and the request names neither an algorithm nor an experiment. "
            f"Name one, such as PPO."
        )
    if not wanted.observation or wanted.action is None:
        raise invalid(f"There is no learner '{name}' yet. To create it, describe the observation and the action.")
    return LearnerSetup(
        name,
        wanted.algorithm,
        wanted.parameters,
        wanted.observation,
        wanted.action,
        options.limits.max_segment_steps,
        caller.token,
        wanted.experiment,
    )


def _await_policy(learner: HostedLearner, learners: Learners, limits: ServiceLimits) -> None:
    known = _wait(learner.wait_until_known, learners, limits)
    if learner.is_closing:
        raise draining()
    if learner.newest is not None:
        # Versions are served whatever became of the worker.
        return
    match learner.condition:
        case Condition.REFUSED if learner.is_over_limit:
            raise precondition(FailureReason.LIMIT, f"The learner '{learner.name}' exceeds a limit: {learner.problem}")
        case Condition.REFUSED:
            raise invalid(f"The learner '{learner.name}' cannot be created: {learner.problem}")
        case Condition.FAILED | Condition.HELD:
            raise _failed(learner)
    if not known:
        doing = "waits until others have started" if learner.worker.is_in_line else "is still being created or restored"
        raise unavailable(f"The learner '{learner.name}' {doing}. Join again.", retry_after_ms=_STARTING_RETRY_MS)


def _wait(wait: Callable[[float], bool], learners: Learners, limits: ServiceLimits) -> bool:
    """Wait for a learner, if few others do; whether that succeeded."""
    if wait(0.0):
        return True
    if not learners.join_slots.acquire(blocking=False):
        return False
    try:
        return wait(limits.join_seconds)
    finally:
        learners.join_slots.release()


def _failed(learner: HostedLearner) -> CallFailed:
    return precondition(
        FailureReason.LEARNER_FAILED,
        f"The learner '{learner.name}' {learner.condition.name}: {learner.problem} Its log is kept. Repair the cause, "
        f"then run rl4sys learners restart {learner.name}, or choose another policy_id.",
    )


def _require_same(learner: HostedLearner, wanted: _Wanted, learners: Learners, limits: ServiceLimits) -> None:
    setup = learner.setup
    if wanted.observation and wanted.observation != setup.observation:
        raise _other(learner, "observes", _words(setup.observation), _words(wanted.observation), wanted)
    if wanted.action is not None and wanted.action != setup.action:
        raise _other(learner, "does", setup.action, wanted.action, wanted)
    if wanted.may_differ:
        _note_differences(learner, wanted)
        return
    if not wanted.algorithm:
        return
    if wanted.algorithm.casefold() == setup.algorithm.casefold() and wanted.parameters == setup.parameters:
        return
    # Only a worker knows the defaults of an algorithm.
    _wait(learner.wait_until_running, learners, limits)
    if learner.condition in (Condition.FAILED, Condition.HELD, Condition.REFUSED):
        raise _failed(learner)
    if learner.condition is not Condition.RUNNING:
        raise unavailable(
            f"The learner '{learner.name}' is being restored, and parameters can be compared only then. Join again.",
            retry_after_ms=_STARTING_RETRY_MS,
        )
    try:
        resolved = learner.resolve(wanted.algorithm, wanted.parameters)
    except RuntimeError as error:
        raise unavailable(f"{error} Join again.", retry_after_ms=_STARTING_RETRY_MS) from error
    if resolved.problem:
        raise invalid(resolved.problem)
    if resolved.config not in (learner.config, learner.commands.settings):
        has, asked = _differences(json.loads(learner.config), json.loads(resolved.config))
        raise _other(learner, "learns with", has, asked, wanted)


def _note_differences(learner: HostedLearner, wanted: _Wanted) -> None:
    """Tell operators if a learner learns with other settings than its experiment says, and how to apply those."""
    if not wanted.algorithm:
        learner.note(
            f"Clients ask for the experiment '{wanted.experiment}', which the server does not offer any more. They "
            f"keep this learner."
        )
        return
    if learner.condition is not Condition.RUNNING:
        return
    try:
        resolved = learner.resolve(wanted.algorithm, wanted.parameters)
    except RuntimeError:
        # The worker is busy; the next join tells.
        return
    if resolved.problem or resolved.config == learner.commands.settings:
        learner.note("")
        return
    has, asked = _differences(json.loads(learner.commands.settings), json.loads(resolved.config))
    changes = " ".join(shlex.quote(f"{name}={json.dumps(value)}") for name, value in asked.items())
    learner.note(
        f"It learns with {has}; the experiment '{wanted.experiment}' says {asked}. To apply that: rl4sys learners set "
        f"{learner.name} {changes}"
    )


def _other(learner: HostedLearner, verb: str, has: object, asked: object, wanted: _Wanted) -> CallFailed:
    return precondition(
        FailureReason.OTHER_LEARNER,
        f"The learner '{learner.name}' {verb} {has}; {wanted.source} asked for {asked}. "
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

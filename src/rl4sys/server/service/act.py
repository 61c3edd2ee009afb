"""The Act call: decisions on the server, for clients without a runtime of their own."""

from __future__ import annotations

import threading
from weakref import WeakKeyDictionary

import numpy as np

from rl4sys.experience import Array, StreamKey
from rl4sys.policy import Decision, KeyedNoise, NoAllowedAction, NumpyPolicy
from rl4sys.server.access.sessions import Session
from rl4sys.server.call_errors import invalid, precondition, unavailable
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.weights import Version
from rl4sys.wire import ContractViolation, FailureReason, decode_question, encode_decision
from rl4sys.wire.generated import training_pb2


class _Runtime:
    """A policy and the version whose weights it holds."""

    def __init__(self, policy: NumpyPolicy) -> None:
        self.policy = policy
        self.lock = threading.Lock()
        self.version = -1

    def load(self, version: Version) -> None:
        if version.number != self.version:
            self.policy.load(version.blob)
            self.version = version.number


class PolicyRuntimes:
    """Decides with the newest version of a learner's explore policy."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self._lock = threading.Lock()
        self._runtimes: WeakKeyDictionary[HostedLearner, _Runtime] = WeakKeyDictionary()

    def act(self, session: Session, request: training_pb2.ActRequest) -> training_pb2.ActReply:
        """Decide for every row. The same request gets the same decisions from the same version."""
        learner, form = session.learner, session.form
        # Clients may compute the hash of the schema alone; a decision creates no experience.
        if request.schema_hash not in (form.hash, form.schema_hash):
            raise precondition(
                FailureReason.SCHEMA, "The request follows another schema than the learner's. Join again."
            )
        if learner.policy is None or learner.newest is None:
            raise unavailable(f"The learner '{learner.name}' has no version yet. Try again.")
        try:
            question = decode_question(form, request, self.max_rows)
        except ContractViolation as error:
            raise invalid(str(error)) from error
        with self._lock:
            runtime = self._runtimes.get(learner)
            if runtime is None:
                runtime = self._runtimes[learner] = _Runtime(NumpyPolicy(learner.policy))
        streams = [StreamKey(session.client, question.agent, question.lane + row) for row in range(question.rows)]
        noise = KeyedNoise(learner.noise_seed, streams, runtime.policy.noise_size).at(question.step)
        with runtime.lock:
            version = learner.newest
            runtime.load(version)
            try:
                with np.errstate(over="ignore", invalid="ignore"):
                    decision = runtime.policy.act(question.observation, noise, question.carry)
            except NoAllowedAction as error:
                raise invalid(str(error)) from error
            if not all(np.isfinite(array).all() for array in _numbers(decision)):
                raise invalid("The values of the observation are so large that the policy overflows. Scale them.")
            return encode_decision(form, decision, version.number)


def _numbers(decision: Decision) -> tuple[Array, ...]:
    return decision.action, *decision.extras.values(), *decision.carry.values()

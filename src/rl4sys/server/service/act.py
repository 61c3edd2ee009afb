"""The Act call: decisions on the server, for clients that do not decide by themselves."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

import numpy as np

from rl4sys.experience import Array
from rl4sys.policy import NUMPY, Decision, NoAllowedAction, PolicySpec, noise_of, run_policy
from rl4sys.server.access.sessions import Session
from rl4sys.server.call_errors import invalid, precondition, unavailable
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.weights import Version
from rl4sys.wire import ContractViolation, FailureReason, Question, SegmentFormat, decode_question, encode_decision
from rl4sys.wire.generated import training_pb2


class _Runtime:
    """A policy of a learner, the version whose weights it holds, and the form of its decisions."""

    def __init__(self, learner: HostedLearner, spec: PolicySpec, form: SegmentFormat) -> None:
        self.spec, self.form, self.lineage = spec, form, learner.lineage.id
        self._learner = learner
        # With numpy, the reference: the bits do not depend on what is installed beside the server.
        self._policy = run_policy(spec, kernels=NUMPY)
        self._lock = threading.Lock()
        self._loaded: Version | None = None

    def decide(self, question: Question, client: str) -> tuple[int, Decision]:
        """The version that decided, and a decision for each row."""
        steps = question.steps or (question.step,) * question.rows
        noise = noise_of(self._learner.noise_seed, question.streams(client), steps, self._policy.noise_size)
        with self._lock:
            number = self._load()
            with np.errstate(over="ignore", invalid="ignore"):
                if question.rows == 1:
                    decision = self._policy.act_on_row(question.observation, 0, noise, question.carry)
                else:
                    # With the bits that each row has alone, and that a client would get by itself.
                    decision, _ = self._policy.act_on_rows(question.observation, noise, question.carry)
            return number, _owned(decision, question.rows)

    def _load(self) -> int:
        """Take the newest version, unless an operator froze the one that decided before; returns its number."""
        loaded, newest = self._loaded, self._learner.newest
        is_frozen = loaded is not None and self._learner.orders.order.mode == "frozen"
        if newest is not None and newest is not loaded and not is_frozen:
            self._policy.load(newest.blob)
            loaded = self._loaded = newest
        if loaded is None:
            raise unavailable(f"The learner '{self._learner.name}' has no version yet. Try again.")
        return loaded.number


class PolicyRuntimes:
    """Decides with the explore or the exploit policy of a learner.

    Each learner has a thread of its own, so that a slow planner delays neither other learners nor other calls.
    """

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self._lock = threading.Lock()
        self._runtimes: WeakKeyDictionary[HostedLearner, dict[bool, _Runtime]] = WeakKeyDictionary()
        self._threads: WeakKeyDictionary[HostedLearner, ThreadPoolExecutor] = WeakKeyDictionary()

    async def act_async(self, session: Session, request: training_pb2.ActRequest) -> training_pb2.ActReply:
        """As `act`, in the thread of the learner. A request whose deadline is over before its turn is left out."""
        with self._lock:
            thread = self._threads.get(session.learner)
            if thread is None:
                thread = self._threads[session.learner] = ThreadPoolExecutor(1, thread_name_prefix="act")
        return await asyncio.get_running_loop().run_in_executor(thread, self.act, session, request)

    def act(self, session: Session, request: training_pb2.ActRequest) -> training_pb2.ActReply:
        """Decide for every row. The same request gets the same decisions from the same version."""
        # Clients may compute the hash of the schema alone; a decision creates no experience.
        if request.schema_hash not in (session.form.hash, session.form.schema_hash):
            raise precondition(
                FailureReason.SCHEMA, "The request follows another schema than the learner's. Join again."
            )
        runtime = self._runtime(session)
        try:
            question = decode_question(runtime.form, request, self.max_rows)
        except ContractViolation as error:
            raise invalid(str(error)) from error
        try:
            version, decision = runtime.decide(question, session.client)
        except NoAllowedAction as error:
            raise invalid(str(error)) from error
        if not all(np.isfinite(array).all() for array in _numbers(decision)):
            raise invalid("The values of the observation are so large that the policy overflows. Scale them.")
        session.activity.version = version
        session.activity.server_decisions += question.rows
        return encode_decision(runtime.form, decision, version)

    def _runtime(self, session: Session) -> _Runtime:
        learner = session.learner
        spec = learner.exploit if session.exploits else learner.policy
        if spec is None:
            raise unavailable(f"The learner '{learner.name}' has no policy yet. Try again.")
        with self._lock:
            runtimes = self._runtimes.setdefault(learner, {})
            runtime = runtimes.get(session.exploits)
            if runtime is None or runtime.lineage != learner.lineage.id or runtime.spec != spec:
                form = SegmentFormat.of(spec) if session.exploits else session.form
                runtime = runtimes[session.exploits] = _Runtime(learner, spec, form)
            return runtime


def _owned(decision: Decision, rows: int) -> Decision:
    """A copy of the first rows, which the next decision does not change."""
    return Decision(
        decision.action[:rows].copy(),
        {name: array[:rows].copy() for name, array in decision.extras.items()},
        {name: array[:rows].copy() for name, array in decision.carry.items()},
    )


def _numbers(decision: Decision) -> tuple[Array, ...]:
    return decision.action, *decision.extras.values(), *decision.carry.values()

"""What the commands of operators do to learners. Each either succeeds, or changes nothing and says why."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.policy import PolicyFileDamaged, PortablePolicy
from rl4sys.server.access.sessions import Sessions
from rl4sys.server.call_errors import invalid, precondition, unavailable
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.inbox import StorageFailed
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand
from rl4sys.server.learners.learners import Learners
from rl4sys.server.service.learner_fork import fork_learner, require_fits
from rl4sys.server.service.store_experience import store_experience
from rl4sys.wire import FailureReason
from rl4sys.wire.generated import operations_pb2

_FOLD_SECONDS = 10.0
"""How long a command waits until the learner has reached it."""


class LearnerManagement:
    """Carries out commands, one at a time."""

    def __init__(self, learners: Learners, sessions: Sessions) -> None:
        self._learners, self._sessions = learners, sessions

    def carry_out(self, learner: HostedLearner, request: operations_pb2.ManageRequest) -> str:
        """Carry out a command, and say in one sentence what it has done."""
        match request.WhichOneof("command"):
            case "pause":
                learner.pause(True)
                return f"The learner '{learner.name}' is paused: experience is stored and waits."
            case "resume":
                learner.pause(False)
                return f"The learner '{learner.name}' learns again."
            case "restart":
                learner.restart()
                return f"The learner '{learner.name}' has a new worker, which continues from its checkpoint and log."
            case "reset":
                return self._reset(learner)
            case "delete":
                return self._delete(learner, is_purged=request.delete.purge)
            case "set":
                changes = changes_of(request.set.changes)
                text = ", ".join(f"{key}={json.dumps(value)}" for key, value in changes.items())
                return self.command(learner, LearnerCommand(CommandKind.SET, changes), f"learns with {text}")
            case "freeze":
                return self.command(learner, LearnerCommand(CommandKind.FREEZE), "does not learn from what arrives")
            case "unfreeze":
                return self.command(learner, LearnerCommand(CommandKind.UNFREEZE), "learns from what arrives")
            case "accept":
                return self._accept(learner)
            case other:
                raise invalid(f"This server does not know the command '{other}'. Upgrade it.")

    def fork(self, source: HostedLearner, request: operations_pb2.Fork, owner: str) -> str:
        """Copy a learner under another name; `owner` is the token that does so. If it is refused, nothing is left."""
        changes = changes_of(request.changes, may_be_empty=True)
        with self._learners.joining(request.name) as underway:
            copy = fork_learner(self._learners, source, request.name, owner, changes, is_refolded=request.refold)
            underway.claim()
        how = "learns again from the whole log" if request.refold else "continues from its present state"
        return f"The learner '{copy.name}' is a copy of '{source.name}' and {how}, with lineage {copy.lineage.id}."

    def carry_out_unopened(self, name: str, request: operations_pb2.ManageRequest) -> str:
        """The same for a learner that could not be opened: it can be opened again, or deleted."""
        problem = self._learners.problems[name]
        match request.WhichOneof("command"):
            case "restart":
                self._learners.reopen(name)
                if (still := self._learners.problems.get(name)) is not None:
                    raise precondition(FailureReason.LEARNER_FAILED, f"'{name}' still cannot be opened: {still}")
                return f"The learner '{name}' is open again."
            case "delete":
                aside = self._learners.discard_unopened(name, is_purged=request.delete.purge)
                return f"The learner '{name}' is deleted.{_where(aside)}"
            case _:
                raise precondition(
                    FailureReason.LEARNER_FAILED,
                    f"The learner '{name}' could not be opened, so that it can only be restarted or deleted: {problem}",
                )

    def export(self, learner: HostedLearner) -> bytes:
        """The newest policy as a portable policy file."""
        newest, explore = learner.newest, learner.policy
        if newest is None or explore is None:
            raise precondition(FailureReason.UNSPECIFIED, f"The learner '{learner.name}' has no policy yet. Try again.")
        steps = learner.progress.steps if learner.progress is not None else 0
        return PortablePolicy(explore, learner.exploit or explore, newest.blob, newest.number, steps).to_bytes()

    def take(self, learner: HostedLearner, kind: operations_pb2.InstalledKind, data: bytes, source: str) -> str:
        """Let a learner continue from a file of this kind."""
        match kind:
            case operations_pb2.INSTALLED_KIND_POLICY:
                return self.install(learner, data, source)
            case operations_pb2.INSTALLED_KIND_STATE:
                return self.warm_start(learner, data, source)
            case _:
                return store_experience(learner, data, source)

    def install(self, learner: HostedLearner, data: bytes, source: str) -> str:
        """Make a portable policy the next version."""
        try:
            policy = PortablePolicy.from_bytes(data, Path(source or "the policy"))
        except PolicyFileDamaged as error:
            raise invalid(str(error)) from error
        if learner.policy is None:
            raise unavailable(f"The learner '{learner.name}' has no policy yet. Try again.")
        if (problem := _difference(policy, learner)) is not None:
            raise precondition(FailureReason.OTHER_LEARNER, problem)
        command = LearnerCommand(CommandKind.INSTALL, {"steps": policy.steps}, policy.weights.astype("<f4").tobytes())
        return self.command(learner, command, f"acts with version {policy.version} of {source}")

    def warm_start(self, learner: HostedLearner, data: bytes, source: str) -> str:
        """Let a learner continue from the state of another one with the same algorithm and shapes."""
        command = LearnerCommand(CommandKind.WARM_START, {}, data)
        return self.command(learner, command, f"continues from the state of {source}")

    def command(self, learner: HostedLearner, command: LearnerCommand, done: str) -> str:
        """Check a command, store it in the log of the learner, and wait a moment until it was folded."""
        if learner.inbox.held:
            raise precondition(
                FailureReason.LEARNER_FAILED, f"The learner '{learner.name}' is HELD: {learner.inbox.held}"
            )
        if command.kind not in (CommandKind.FREEZE, CommandKind.UNFREEZE):
            require_fits(learner, command)
        try:
            numbers = learner.inbox.append_command(command).result()
        except (StorageFailed, OSError, RuntimeError) as error:
            raise unavailable(f"The command could not be stored: {error}", FailureReason.STORAGE) from error
        outcome = learner.wait_for_command(numbers.stop, 0.0 if learner.orders.is_paused else _FOLD_SECONDS)
        if outcome is None:
            return f"The command is stored. The learner '{learner.name}' comes to it after the experience before it."
        if outcome.problem:
            raise precondition(FailureReason.UNSPECIFIED, outcome.problem)
        return f"The learner '{learner.name}' {done}."

    def _reset(self, learner: HostedLearner) -> str:
        self._end_sessions(learner, "was reset by an operator")
        new, aside = self._learners.start_over(learner)
        return (
            f"The learner '{new.name}' starts over with lineage {new.lineage.id}; its clients follow. What it was is "
            f"in {aside}."
        )

    def _delete(self, learner: HostedLearner, *, is_purged: bool) -> str:
        self._end_sessions(learner, "was deleted by an operator")
        aside = self._learners.discard(learner, is_purged=is_purged)
        return f"The learner '{learner.name}' is deleted.{_where(aside)}"

    def expire(self, learner: HostedLearner) -> str:
        """Remove a learner that no client uses."""
        self._end_sessions(learner, "expired, since it was not used")
        aside = self._learners.discard(learner, is_purged=False)
        return f"The learner '{learner.name}' expired.{_where(aside)}"

    def _end_sessions(self, learner: HostedLearner, why: str) -> None:
        learner.leave(f"The learner '{learner.name}' {why}. Join again, then repeat.")
        self._sessions.forget_learner(learner)

    def _accept(self, learner: HostedLearner) -> str:
        others = learner.history.other_lineages.holders()
        lineage = learner.accept_lineages()
        clients = sum(each.clients for each in others)
        return f"{clients} clients of '{learner.name}' held another lineage, and follow lineage {lineage.id} now."


def changes_of(changes: Mapping[str, str], *, may_be_empty: bool = False) -> dict[str, Any]:
    """Settings by their dotted names, with their values read from JSON."""
    if not changes and not may_be_empty:
        raise invalid("No setting is given. Name some, such as algorithm.lr=1e-4.")
    found = {}
    for key, text in changes.items():
        try:
            found[key] = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise invalid(f"{key}: '{text[:128]}' is not JSON: {error}.") from error
    return found


def _where(aside: Path | None) -> str:
    return f" Its files are in {aside}." if aside is not None else " Its files are deleted, too."


def _difference(policy: PortablePolicy, learner: HostedLearner) -> str | None:
    """Why a policy cannot be a version of a learner; None if it can."""
    own = learner.policy
    if own is None or policy.explore.to_json() == own.to_json():
        return None
    theirs, mine = json.loads(policy.explore.to_json()), json.loads(own.to_json())
    parts = [name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)]
    return (
        f"The policy is another one than that of learner '{learner.name}': they differ in {', '.join(sorted(parts))}. "
        f"Observations, actions, networks and heads must be equal. Compare: rl4sys learners export {learner.name}, "
        f"then rl4sys policy inspect on both files."
    )

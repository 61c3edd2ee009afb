"""Forks: a copy of a learner under another name, which continues by itself or learns again with other settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rl4sys.records import Durability, LogBroken, LogFull, RecordsDamaged, RecordsGone
from rl4sys.server.call_errors import invalid, precondition, unavailable
from rl4sys.server.data_directory.forked_data import ForkImpossible, copy_present_state, copy_whole_log
from rl4sys.server.learners.condition import Condition
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.learners.learners import Learners
from rl4sys.wire import ContractViolation, FailureReason, SegmentFormat, require_name
from rl4sys.wire.port_range import shared_policy

_START_SECONDS = 60.0
"""How long a fork may take until its policy is known; its worker then continues in its own time."""


def fork_learner(
    learners: Learners,
    source: HostedLearner,
    name: str,
    owner: str,
    changes: Mapping[str, Any],
    *,
    is_refolded: bool,
) -> HostedLearner:
    """Copy a learner, and wait until the copy has its policy. Raises `CallFailed` if it cannot be."""
    _require_possible(learners, source, name)
    setup = replace(source.setup, learner=name, owner=owner)
    if is_refolded and changes:
        setup = replace(setup, parameters=_changed_parameters(source, changes))
    if changes and not is_refolded:
        require_fits(source, LearnerCommand(CommandKind.SET, changes))

    def fill(place: Path) -> None:
        (copy_whole_log if is_refolded else copy_present_state)(source.inbox, place, changes)

    copy = _add(learners, setup, fill)
    copy.wait_until_known(_START_SECONDS)
    if copy.newest is None and copy.condition in (Condition.REFUSED, Condition.FAILED, Condition.HELD):
        reason = FailureReason.LIMIT if copy.is_over_limit else FailureReason.UNSPECIFIED
        raise precondition(reason, f"The copy '{name}' cannot be created: {copy.problem}")
    if copy.policy is not None and source.policy is not None and _schema(copy) != _schema(source):
        raise precondition(
            FailureReason.UNSPECIFIED,
            "With the changed settings, policies note other numbers with each step than those in the log, so that "
            "nothing could be learned from it. Change other settings.",
        )
    return copy


def require_fits(learner: HostedLearner, command: LearnerCommand) -> None:
    """Ask the worker of a learner whether a command fits, before anything is stored."""
    try:
        checked = learner.check(command)
    except RuntimeError as error:
        raise unavailable(
            f"The command could not be checked: {error} If the learner FAILED, restart it first: rl4sys learners "
            f"restart {learner.name}"
        ) from error
    if checked.problem:
        raise precondition(FailureReason.UNSPECIFIED, checked.problem)


def _require_possible(learners: Learners, source: HostedLearner, name: str) -> None:
    try:
        require_name("The name of the copy", shared_policy(name) or name)
    except ContractViolation as error:
        raise invalid(f"{error} Put shared~ before the policy_id of a learner for several clients.") from error
    if learners.durability is Durability.MEMORY:
        raise precondition(FailureReason.UNSPECIFIED, "This server keeps logs in memory, so it cannot copy learners.")
    if source.inbox.held:
        raise precondition(FailureReason.LEARNER_FAILED, f"The learner '{source.name}' is HELD: {source.inbox.held}")


def _add(learners: Learners, setup: LearnerSetup, fill: Callable[[Path], None]) -> HostedLearner:
    try:
        return learners.add(setup, fill)
    except (ForkImpossible, RecordsDamaged, RecordsGone) as error:
        raise precondition(FailureReason.UNSPECIFIED, str(error)) from error
    except (OSError, LogFull, LogBroken) as error:
        raise unavailable(
            f"The copy '{setup.learner}' cannot be stored: {error}. Free space on the disk of the server.",
            FailureReason.STORAGE,
        ) from error


def _changed_parameters(source: HostedLearner, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The original settings of a learner with all defaults, and with other values for some dotted names."""
    if not source.config:
        raise unavailable(f"The settings of '{source.name}' are not known yet. Try again.")
    parameters: dict[str, Any] = json.loads(source.config)
    for name, value in changes.items():
        *parents, last = name.split(".")
        group: Any = parameters
        for parent in parents:
            group = group.get(parent) if isinstance(group, dict) else None
        if not isinstance(group, dict):
            raise invalid(f"{name}: there is no group of settings '{'.'.join(parents)}'.")
        group[last] = value
    return parameters


def _schema(learner: HostedLearner) -> bytes | None:
    """What identifies the numbers of a segment, whatever the lineage."""
    return None if learner.policy is None else SegmentFormat.of(learner.policy).hash

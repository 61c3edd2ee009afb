"""Groups runs that differ in their seed only, and finds the settings that differ between groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rl4sys.laboratory.run_index.records import RunRecord, Status
from rl4sys.laboratory.run_index.run_values import flat_settings
from rl4sys.run_files import read_config

_MAX_IN_LABEL = 3
"""Up to so many settings are named in a label; otherwise groups are numbered."""
_IRRELEVANT = ("experiment", "logging")
"""Sections that do not affect what is learned."""


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a group."""

    directory: Path
    record: RunRecord


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one config with different seeds."""

    label: str
    members: tuple[Member, ...]
    settings: Mapping[str, Any]
    """Dotted keys with values."""

    @property
    def environment(self) -> str:
        """The environment of all members."""
        return self.members[0].record.environment


def group(chosen: Sequence[tuple[Path, RunRecord]]) -> tuple[list[Group], list[str]]:
    """The groups in the order of their first runs, and remarks about runs that are left out or unfinished."""
    by_config: dict[str, list[Member]] = {}
    remarks = []
    for root, record in chosen:
        if not record.config:
            remarks.append(f"{record.id} is left out: {record.cause}")
            continue
        by_config.setdefault(record.config, []).append(Member(root / record.id, record))
    groups = []
    for members in by_config.values():
        kept, repeated = _one_per_seed(members)
        remarks += repeated + [_unfinished(member) for member in kept if member.record.status is not Status.FINISHED]
        groups.append(Group(kept[0].record.name, tuple(kept), settings_of(kept[0].directory)))
    return _labelled(groups), remarks


def settings_of(run: Path) -> dict[str, Any]:
    """The settings that affect what a run learns, by dotted keys."""
    return flat_settings({name: part for name, part in read_config(run).items() if name not in _IRRELEVANT})


def differences(groups: Sequence[Group]) -> dict[str, list[Any]]:
    """Settings that differ between groups, with the value of each group; None if a group lacks the setting."""
    return differing([each.settings for each in groups])


def differing(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Keys whose values are not all equal, with each value; None where the key is missing."""
    keys = dict.fromkeys(key for each in settings for key in each)
    values = {key: [each.get(key) for each in settings] for key in keys}
    return {key: row for key, row in values.items() if any(value != row[0] for value in row)}


def _one_per_seed(members: Sequence[Member]) -> tuple[list[Member], list[str]]:
    """Of runs with the same seed, which are not independent, only the longest is kept."""
    kept: dict[int | None, Member] = {}
    remarks = []
    for member in sorted(members, key=lambda member: (member.record.steps, member.record.created), reverse=True):
        if member.record.seed in kept:
            remarks.append(
                f"{member.record.id} is left out: {kept[member.record.seed].record.id} has the same config and seed"
            )
        else:
            kept[member.record.seed] = member
    return sorted(kept.values(), key=lambda member: (member.record.seed or 0, member.record.id)), remarks


def _unfinished(member: Member) -> str:
    record = member.record
    return f"{record.id} is {record.status} at step {record.steps:,} of {record.total:,}; its values so far are used"


def _labelled(groups: Sequence[Group]) -> list[Group]:
    labelled: list[Group] = []
    for each in groups:
        namesakes = [other for other in groups if other.label == each.label]
        labelled.append(replace(each, label=_label(each, namesakes)) if len(namesakes) > 1 else each)
    return labelled


def _label(each: Group, namesakes: Sequence[Group]) -> str:
    apart = differences(namesakes)
    place = next(number for number, other in enumerate(namesakes) if other is each)
    if len(apart) > _MAX_IN_LABEL:
        return f"{each.label} ({place + 1})"
    settings = ", ".join(f"{key.rpartition('.')[2]}={values[place]}" for key, values in apart.items())
    return f"{each.label} ({settings})"

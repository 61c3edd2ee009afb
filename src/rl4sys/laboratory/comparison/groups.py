"""Runs that differ by chance alone belong together; what differs between such groups is told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rl4sys.laboratory.run_index.records import RunRecord, Status
from rl4sys.run_files import read_config

_MOST_IN_LABEL = 3
"""Settings that a label names before a number has to do."""
_APART = ("experiment", "logging")
"""Sections that decide nothing about what is learned."""


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a group."""

    directory: Path
    record: RunRecord


@dataclass(frozen=True, slots=True)
class Group:
    """Runs of one config, each with a seed of its own."""

    label: str
    members: tuple[Member, ...]
    settings: Mapping[str, Any]
    """Dotted keys with values."""

    @property
    def environment(self) -> str:
        """What all of them act in."""
        return self.members[0].record.environment


def group(chosen: Sequence[tuple[Path, RunRecord]]) -> tuple[list[Group], list[str]]:
    """The groups in the order of their first runs, and remarks on what was left out or should be known."""
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
    """What decides what a run learns, as dotted keys with values."""
    return _flat({name: part for name, part in read_config(run).items() if name not in _APART})


def differences(groups: Sequence[Group]) -> dict[str, list[Any]]:
    """Settings that are not the same in all groups, with the value of each; None where there is no such setting."""
    keys = dict.fromkeys(key for each in groups for key in each.settings)
    values = {key: [each.settings.get(key) for each in groups] for key in keys}
    return {key: row for key, row in values.items() if any(value != row[0] for value in row)}


def _one_per_seed(members: Sequence[Member]) -> tuple[list[Member], list[str]]:
    """A seed that was run twice gives the same run twice, which is no second observation: the furthest one counts."""
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
    return f"{record.id} is {record.status} at step {record.steps:,} of {record.total:,}; what it has so far counts"


def _labelled(groups: Sequence[Group]) -> list[Group]:
    labelled: list[Group] = []
    for each in groups:
        namesakes = [other for other in groups if other.label == each.label]
        labelled.append(replace(each, label=_label(each, namesakes)) if len(namesakes) > 1 else each)
    return labelled


def _label(each: Group, namesakes: Sequence[Group]) -> str:
    apart = differences(namesakes)
    place = next(number for number, other in enumerate(namesakes) if other is each)
    if len(apart) > _MOST_IN_LABEL:
        return f"{each.label} ({place + 1})"
    told = ", ".join(f"{key.rpartition('.')[2]}={values[place]}" for key, values in apart.items())
    return f"{each.label} ({told})"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict) and value:
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = value
    return flat

"""The lineage of a learner: the history that its versions belong to, and those that an operator replaced by it."""

from __future__ import annotations

import json
import secrets
import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rl4sys.atomic_files import replace_file
from rl4sys.server.learners.learner_setup import SetupDamaged

_NAME = "lineage.json"
_FORMAT = 1
_MAX_REPLACED = 256
_MAX_HOLDERS = 10_000


@dataclass(frozen=True, slots=True)
class Lineage:
    """Within one lineage a version number means one set of weights, and versions only increase."""

    id: str = ""
    """Random; empty for a learner of version 0.2 or earlier that was never reset."""
    replaced: tuple[str, ...] = ()
    """Earlier lineages, whose clients follow this one. The oldest of very many are forgotten."""

    @classmethod
    def fresh(cls) -> Lineage:
        """The lineage of a new learner."""
        return cls(secrets.token_hex(8))

    def successor(self, others: Iterable[str] = ()) -> Lineage:
        """A new lineage that replaces this one, and others."""
        return Lineage.fresh().accepting((*self.replaced, self.id, *others))

    def branch(self) -> Lineage:
        """A new lineage from a past version of this one, whose clients keep theirs until an operator decides."""
        return Lineage.fresh().accepting(self.replaced)

    def accepting(self, others: Iterable[str]) -> Lineage:
        """The same lineage, which replaces others, too."""
        replaced = dict.fromkeys((*self.replaced, *others))
        return Lineage(self.id, tuple(each for each in replaced if each not in ("", self.id))[-_MAX_REPLACED:])

    def continues(self, other: str) -> bool:
        """Whether clients that act with a policy of another lineage follow this one."""
        return other in ("", self.id, *self.replaced)

    def write(self, directory: Path) -> None:
        """Write the file in the learner's directory atomically."""
        raw = {"format": _FORMAT, "lineage": self.id, "replaced": self.replaced}
        replace_file(directory / _NAME, json.dumps(raw).encode())

    @classmethod
    def read(cls, directory: Path) -> Lineage:
        """Read the file; an empty lineage if there is none, `SetupDamaged` if it cannot be read."""
        path = directory / _NAME
        try:
            raw = json.loads(path.read_bytes())
            if raw["format"] != _FORMAT:
                raise ValueError(f"it has format {raw['format']}, and this version reads {_FORMAT}")
            return cls(str(raw["lineage"]), tuple(map(str, raw["replaced"])))
        except FileNotFoundError:
            return cls()
        except (ValueError, KeyError, TypeError) as error:
            raise SetupDamaged(
                f"{path} cannot be read: {type(error).__name__}: {error}. Restore it from a backup; without it clients "
                f"could not tell this learner's versions from others."
            ) from error


@dataclass(frozen=True, slots=True)
class LineageHolders:
    """Clients that act with a policy of a lineage which their learner does not continue."""

    lineage: str
    version: int
    """The greatest version among them."""
    clients: int


class OtherLineages:
    """Which clients of a learner act with a lineage that it does not continue. Any thread may call any method."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def note(self, client: str, lineage: str, version: int) -> bool:
        """A client holds a version of another lineage; whether it is the first one with that lineage."""
        with self._lock:
            is_first = all(held != lineage for held, _ in self._held.values())
            self._held[client] = (lineage, version)
            self._held.move_to_end(client)
            if len(self._held) > _MAX_HOLDERS:
                self._held.popitem(last=False)
            return is_first

    def forget(self, client: str) -> None:
        """A client follows the learner."""
        with self._lock:
            self._held.pop(client, None)

    def clear(self) -> None:
        """An operator has decided."""
        with self._lock:
            self._held.clear()

    def holders(self) -> list[LineageHolders]:
        """The lineages and their clients, most clients first."""
        with self._lock:
            held = list(self._held.values())
        found = [
            LineageHolders(
                lineage, max(v for each, v in held if each == lineage), sum(each == lineage for each, _ in held)
            )
            for lineage in dict.fromkeys(each for each, _ in held)
        ]
        return sorted(found, key=lambda holders: -holders.clients)

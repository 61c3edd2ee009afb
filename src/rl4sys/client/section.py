"""Reads typed values from a section of a config file, with a clear error for every wrong one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rl4sys.suggestions import did_you_mean


class SettingsError(ValueError):
    """The settings of a client are invalid."""


class Section:
    """Values by name. `finish` refuses every name that was not read."""

    def __init__(self, values: Any, where: str = "") -> None:
        self.where = where
        if not isinstance(values, Mapping) or not all(isinstance(key, str) for key in values):
            raise SettingsError(
                f"{where or 'The settings'}: got {shown(values)}; expected a mapping of names to values."
            )
        self._values = dict(values)
        self._read: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def raw(self, name: str, default: Any = None) -> Any:
        """The value, unchecked."""
        self._read.add(name)
        value = self._values.get(name)
        return default if value is None else value

    def text(self, name: str, default: str | None = None) -> str | None:
        """A string that is not empty."""
        value = self.raw(name, default)
        if value is not None and (not isinstance(value, str) or not value):
            raise self._wrong(name, value, "a string")
        return value

    def whole(self, name: str, default: int | None = None, least: int = 0) -> int | None:
        """A whole number, `least` or more."""
        value = self.raw(name, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < least):
            raise self._wrong(name, value, f"a whole number, at least {least}")
        return value

    def number(self, name: str, default: float | None = None, least: float = 0.0) -> float | None:
        """A number, `least` or more."""
        value = self.raw(name, default)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= least):
            raise self._wrong(name, value, f"a number, at least {least:g}")
        return value

    def choice(self, name: str, allowed: Iterable[str], default: str) -> str:
        """One of the allowed words."""
        words = list(allowed)
        value = self.raw(name, default)
        if value not in words:
            hint = did_you_mean(value, words) if isinstance(value, str) else ""
            raise self._wrong(name, value, f"one of {', '.join(words)}{hint}")
        return str(value)

    def section(self, name: str) -> Section:
        """The section with this name; an empty one where it is absent."""
        return Section(self.raw(name, {}), self._place(name))

    def rest(self) -> dict[str, Any]:
        """All values that were not read yet; they count as read from now on."""
        rest = {name: value for name, value in self._values.items() if name not in self._read}
        self._read |= rest.keys()
        return rest

    def finish(self, known: Iterable[str] = ()) -> None:
        """Refuse names that were not read; `known` adds names to suggest."""
        for name in self._values.keys() - self._read:
            words = [*self._read, *known]
            raise SettingsError(
                f"{self._place(name)}: unknown name{did_you_mean(name, words)}. Known here: {', '.join(sorted(words))}."
            )

    def _place(self, name: str) -> str:
        return f"{self.where}.{name}" if self.where else name

    def _wrong(self, name: str, value: object, expected: str) -> SettingsError:
        return SettingsError(f"{self._place(name)}: got {shown(value)}; expected {expected}.")


def shown(value: object) -> str:
    """A value for an error message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."

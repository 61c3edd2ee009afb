"""Finds the extension `rl4sys_native`, which runs policies without numpy, and says why there is none."""

from __future__ import annotations

import importlib
from functools import cache
from types import ModuleType

from rl4sys.version import __version__

_INSTALL = "pip install 'rl4sys[native]'"


class NativeUnavailable(RuntimeError):
    """The native runtime was asked for, and cannot be used here."""


@cache
def native_extension() -> ModuleType:
    """The extension, or `NativeUnavailable`."""
    try:
        extension = importlib.import_module("rl4sys_native")
    except ModuleNotFoundError as error:
        if error.name != "rl4sys_native":
            raise _unusable(error) from error
        raise NativeUnavailable(f"rl4sys-native is not installed: {_INSTALL}.") from error
    except (ImportError, OSError, RuntimeError) as error:
        # Built for another processor, another Python or another C library, or numpy's arrays are not as it knows them.
        raise _unusable(error) from error
    version = getattr(extension, "__version__", "of an unknown version")
    if version != __version__:
        raise NativeUnavailable(
            f"rl4sys-native {version} does not belong to rl4sys {__version__}: "
            f"pip install 'rl4sys-native=={__version__}'."
        )
    return extension


def native_problem() -> str | None:
    """Why there is no native runtime; None if there is one."""
    try:
        native_extension()
    except NativeUnavailable as error:
        return str(error)
    return None


def is_native_broken() -> bool:
    """Whether the extension is installed, but of no use: a user should know."""
    problem = native_problem()
    return problem is not None and "is not installed" not in problem


def _unusable(error: Exception) -> NativeUnavailable:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return NativeUnavailable(
        f"rl4sys-native cannot be loaded on this machine ({reason}): pip install --force-reinstall 'rl4sys-native'."
    )

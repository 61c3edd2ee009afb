"""The versions that a cluster installs: those of this machine."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata

from rl4sys import __version__

UV = "0.9.7"
"""The release of uv that installs Python and the packages on a machine."""
GOOGLE_CLIENT = "2.184.0"
"""The release of Google's client that Ray's autoscaler uses on a head, if none is installed here."""
BOTO3 = "1.40.61"
"""The release of boto3 that Ray's autoscaler uses on a head, if none is installed here."""
_EXTRAS = ("train", "ray")


class PackageMissing(RuntimeError):
    """A package whose version would be pinned is not installed."""


def version_of(package: str, otherwise: str | None = None) -> str:
    """The public version of an installed package: the same one is on every index, whatever the build."""
    try:
        return metadata.version(package).partition("+")[0]
    except metadata.PackageNotFoundError:
        if otherwise is not None:
            return otherwise
        raise PackageMissing(
            f"A cluster file pins the version of {package} that is installed here, and there is none. "
            "Install it with: pip install 'rl4sys[train,ray]'"
        ) from None


def python_version() -> str:
    """The version of this interpreter, such as 3.11.7."""
    return platform.python_version()


def requirement() -> str:
    """The requirement for this release with all that trials need."""
    return f"rl4sys[{','.join(_EXTRAS)}]=={__version__}"


def constraints() -> str:
    """A constraints file with the version of every package that this release needs and that is installed here."""
    lines = sorted(f"{name}=={version}" for name, version in _needed() if name != "rl4sys")
    return "\n".join(["# The versions of the machine on which `rl4sys cluster init` ran.", *lines, ""])


def _needed() -> Iterator[tuple[str, str]]:
    """Names and versions of the packages that RL4Sys with its extras needs, directly or indirectly."""
    # Imported here: it comes with the extra `train`, and only this function needs it.
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    waiting = [Requirement(f"rl4sys[{','.join(_EXTRAS)}]"), Requirement("ray[default]"), Requirement("pyarrow")]
    seen: set[tuple[str, str]] = set()
    found: dict[str, str] = {}
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        extras = {"", *wanted.extras} - {extra for known, extra in seen if known == name}
        seen |= {(name, extra) for extra in extras}
        try:
            distribution = metadata.distribution(wanted.name)
        except metadata.PackageNotFoundError:
            continue
        found[name] = distribution.version.partition("+")[0]
        for text in distribution.requires or ():
            inner = Requirement(text)
            applies = inner.marker is None or any(inner.marker.evaluate({"extra": extra}) for extra in extras)
            if applies and {(canonicalize_name(inner.name), extra) for extra in {"", *inner.extras}} - seen:
                waiting.append(inner)
    yield from found.items()

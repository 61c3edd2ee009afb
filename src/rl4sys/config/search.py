"""Finds a config file by its name, also among those that come with RL4Sys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

from rl4sys.config.errors import ConfigError
from rl4sys.suggestions import nearest

_SUFFIXES = (".yaml", ".yml", ".json")


def find_config(name: str | Path, beside: Path, search_path: Sequence[Path], reason: str = "") -> Path:
    """The resolved path of a config: beside the file that names it, or in the first folder that has it.

    `reason` is added to the error message if there is none: `which my.yaml extends`.
    """
    relative = Path(name).expanduser()
    candidates = list(dict.fromkeys((folder / relative).resolve() for folder in (beside, *search_path)))
    for candidate in candidates:
        if candidate.is_file():
            return candidate
    searched = ", ".join(str(candidate) for candidate in candidates)
    near = _near(relative, list(_known(relative, candidates, search_path)))
    hint = f" Did you mean '{near}'?" if near else ""
    raise ConfigError(f"There is no config '{name}'{f', {reason}' if reason else ''}. Searched: {searched}.{hint}")


def packaged_configs() -> Path:
    """The directory of the configs that come with RL4Sys."""
    installed = Path(str(resources.files("rl4sys"))) / "configs"
    return installed if installed.is_dir() else Path(__file__).parents[3] / "configs"


def _known(name: Path, candidates: Sequence[Path], search_path: Sequence[Path]) -> Iterator[str]:
    for candidate in candidates:
        if candidate.parent.is_dir():
            yield from (str(name.with_name(path.name)) for path in candidate.parent.iterdir() if _is_config(path))
    for folder in search_path:
        yield from (str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if _is_config(path))


def _near(name: Path, known: Sequence[str]) -> str | None:
    elsewhere = [other for other in known if Path(other).stem == name.stem]
    return elsewhere[0] if elsewhere else nearest(str(name), known)


def _is_config(path: Path) -> bool:
    return path.suffix in _SUFFIXES and path.is_file()

"""Names of Atari games, and emulators that have one loaded. The emulator (ale-py, GPL-2.0) is imported only here."""

from __future__ import annotations

import importlib
import re
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from rl4sys.environments.making import MissingDependency
from rl4sys.environments.names import UnknownEnvironment, is_atari
from rl4sys.suggestions import did_you_mean_one_of

UNIVERSE = "atari"
"""How the names of games begin: atari/Pong."""
_FOR_TWO = {"combat", "joust", "maze_craze", "warlords"}
"""Games that the emulator does not play for one player: loading one of them would end the process."""
_VERSION = re.compile(r"-v\d+$")


class MissingRom(FileNotFoundError):
    """A game is known, but the file that holds it is missing or damaged."""


def game_name(name: str) -> str:
    """The one spelling among several: atari/space_invaders and ALE/SpaceInvaders-v5 are atari/SpaceInvaders."""
    game = _VERSION.sub("", name.partition("/")[2]) if is_atari(name) else name
    return f"{UNIVERSE}/{_title(game) if game.islower() else game}"


def load_game(name: str, max_frames: int) -> Any:
    """An emulator with the game of this name, which ends every game after so many frames. Takes some 0.1 s."""
    ale_py = _emulators(name)
    interface = ale_py.ALEInterface
    interface.setLoggerMode(ale_py.LoggerMode.Error)
    path = _rom(name)
    emulator = interface()
    # Sticky actions are drawn by `Atari`: a saved state of the emulator lacks the action that it holds.
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.setInt("max_num_frames_per_episode", max_frames)
    # Without sticky actions this seed changes no game.
    emulator.setInt("random_seed", 0)
    emulator.loadROM(path)
    return emulator


def game_names() -> list[str]:
    """All games for one player, as atari/Pong."""
    return list(_games())


def _emulators(name: str) -> Any:
    try:
        return importlib.import_module("ale_py")
    except ModuleNotFoundError as cause:
        raise MissingDependency(
            f"Environment '{name}' needs ale-py, which is not installed. Install it with: pip install 'rl4sys[atari]'"
        ) from cause
    except ImportError as cause:
        raise MissingDependency(
            f"Environment '{name}' needs ale-py, which cannot be imported here ({cause}). Install it again with: "
            f"pip install --force-reinstall ale-py"
        ) from cause


def _games() -> dict[str, str]:
    """All games for one player, by name, as ale-py names their files."""
    games = set(importlib.import_module("ale_py.roms").get_all_rom_ids()) - _FOR_TWO
    return {f"{UNIVERSE}/{_title(game)}": game for game in sorted(games)}


def _rom(name: str) -> Path:
    games = _games()
    if name in {f"{UNIVERSE}/{_title(game)}" for game in _FOR_TWO}:
        raise UnknownEnvironment(f"The Atari game '{name}' is for two players, and cannot be played alone.")
    if name not in games:
        hint = did_you_mean_one_of(name, games) or "Games have names such as atari/Pong and atari/SpaceInvaders."
        raise UnknownEnvironment(f"Unknown Atari game '{name}'. {hint}")
    try:
        # Where ALE_ROMS_DIR is set, the package prints that; a library never prints.
        with redirect_stdout(None):
            path = importlib.import_module("ale_py.roms").get_rom_path(games[name])
    except OSError as cause:
        reason = " ".join(str(cause).split()).rstrip(".")
        raise MissingRom(
            f"The ROM of '{name}' cannot be read: {reason}. Reinstall ale-py, which brings its ROMs, or unset "
            f"ALE_ROMS_DIR."
        ) from cause
    return Path(path)


def _title(game: str) -> str:
    return game.title().replace("_", "")

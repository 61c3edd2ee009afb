"""Which rank of how many a process is, and where the ranks meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rl4sys.config import ConfigError

_NAMES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class RanksMisconfigured(ConfigError):
    """The ranks of a run cannot be started like this."""


@dataclass(frozen=True, slots=True)
class RankPlace:
    """One rank among several."""

    rank: int
    ranks: int
    host: str = "127.0.0.1"
    """Where rank 0 is reached."""
    port: int = 0
    """The port there; 0 lets rank 0 choose one, which it announces."""
    local_rank: int = 0
    """The number of the rank on its machine: that of its GPU."""
    local_ranks: int = 1
    """Ranks on its machine, which share the cores."""
    attempt: str = "0"
    """Keeps ranks of different starts apart that meet at the same place."""
    is_served: bool = False
    """Whether another process, such as torchrun, already serves the meeting point."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> RankPlace | None:
        """What `torchrun` has set; None outside of it, or for a single rank."""
        given = [name for name in _NAMES if name in environment]
        if "RANK" not in given or "WORLD_SIZE" not in given:
            return None
        if missing := [name for name in _NAMES if name not in environment]:
            raise RanksMisconfigured(
                f"RANK and WORLD_SIZE are set, but {' and '.join(missing)} not; start the ranks with torchrun, or set "
                f"all of {', '.join(_NAMES)}."
            )
        try:
            rank, ranks, port = (int(environment[name]) for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
            local_rank, local_ranks = (
                int(environment.get(name, default)) for name, default in (("LOCAL_RANK", 0), ("LOCAL_WORLD_SIZE", 1))
            )
        except ValueError as error:
            raise RanksMisconfigured(f"RANK, WORLD_SIZE and MASTER_PORT have to be integers: {error}.") from None
        if not 0 <= rank < ranks:
            raise RanksMisconfigured(f"RANK is {rank}, and WORLD_SIZE is {ranks}; ranks are counted from 0.")
        if ranks == 1:
            return None
        return cls(
            rank,
            ranks,
            environment["MASTER_ADDR"],
            port,
            local_rank,
            local_ranks,
            attempt=environment.get("TORCHELASTIC_RESTART_COUNT", "0"),
            is_served=environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True",
        )

"""A rank other than 0: collects its share, computes its parts, and otherwise does as rank 0 says."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import torch

from rl4sys.checkpoints import ReplayRows, decode_state
from rl4sys.environments import Grade
from rl4sys.experiments.components import Components
from rl4sys.experiments.config import load_experiment
from rl4sys.experiments.process_random import restore_process_random
from rl4sys.experiments.ranks.leader import gathered_digests, gathered_random
from rl4sys.experiments.ranks.rank_group import RankGroup
from rl4sys.experiments.ranks.shared_lanes import GatheredShares
from rl4sys.experiments.threads import act_with_one_thread
from rl4sys.heap import keep_freed_memory
from rl4sys.learning import Diverged
from rl4sys.state import State


def follow(group: RankGroup) -> None:
    """Take part in the run of rank 0 until it ends; raises `RankLost` if a rank dies before that."""
    with ExitStack() as resources:
        scratch = resources.enter_context(tempfile.TemporaryDirectory(prefix="rl4sys-rank-"))
        follower = Follower(group, _order(group), Path(scratch))
        resources.callback(follower.close)
        while follower.obey(_order(group)):
            pass


class Follower:
    """The learner and the lanes of one rank."""

    def __init__(self, group: RankGroup, setup: State, scratch: Path) -> None:
        self._group = group
        torch.set_num_threads(setup["threads"])
        act_with_one_thread()
        keep_freed_memory()
        config = load_experiment(setup["config"])
        components = Components(
            config, device_of(setup["device"], group), Grade[setup["grade"]], group, setup["kernels"]
        )
        self._learner = components.learner(scratch)
        source = components.source(self._learner)
        assert isinstance(source, GatheredShares)
        self._source = source

    def obey(self, order: State) -> bool:
        """Do what rank 0 says; false if that is to end."""
        match order:
            case {"order": "turn"}:
                collected = self._source.take_turn(self._learner.store.newest)
                # It diverges on rank 0 at the same time, which says what to do.
                with suppress(Diverged):
                    self._learner.learn(collected.segments)
            case {"order": "state"}:
                self._source.give_state()
            case {"order": "restore", "shares": shares}:
                self._source.take_state(shares)
            case {"order": "learner", "state": state}:
                self._learner.restore(state)
            case {"order": "rows", "first": first, "rows": rows}:
                buffer = self._learner.buffer
                assert isinstance(buffer, ReplayRows)
                buffer.load_rows(first, rows)
            case {"order": "parts", "parts": parts}:
                self._learner.algorithm.train_state.splitter.parts = parts
            case {"order": "roll_back", "state": state}:
                self._learner.roll_back(state)
            case {"order": "weights"}:
                gathered_digests(self._group, self._learner.store.newest.blob)
            case {"order": "random"}:
                gathered_random(self._group)
            case {"order": "restore_random", "states": states}:
                if str(self._group.rank) in states:
                    restore_process_random(states[str(self._group.rank)])
            case {"order": "end"}:
                return False
            case _:
                raise ValueError(f"Rank 0 sent an unknown order: {order.get('order')!r}.")
        return True

    def close(self) -> None:
        """Close the environments."""
        self._source.close()


def device_of(wanted: str, group: RankGroup) -> torch.device:
    """The device of a rank: ranks on one machine take its GPUs in order."""
    return torch.device("cuda", group.place.local_rank) if wanted.startswith("cuda") else torch.device(wanted)


def _order(group: RankGroup) -> Any:
    return decode_state(group.receive())

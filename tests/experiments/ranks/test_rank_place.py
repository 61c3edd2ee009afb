"""torchrun tells a process which rank it is."""

from __future__ import annotations

import pytest

from rl4sys.experiments.ranks import RankPlace, RanksMisconfigured

TORCHRUN = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node0", "MASTER_PORT": "29500"}


def test_without_torchrun_there_is_no_rank() -> None:
    assert RankPlace.from_environment({}) is None
    assert RankPlace.from_environment({**TORCHRUN, "RANK": "0", "WORLD_SIZE": "1"}) is None


def test_torchrun_says_where_ranks_meet() -> None:
    agent = {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True"}
    place = RankPlace.from_environment(TORCHRUN | agent)
    assert place == RankPlace(1, 2, "node0", 29500, local_rank=1, local_ranks=2, is_served=True)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"MASTER_PORT": "http"}, "have to be integers"),
        ({"RANK": "2"}, "ranks are counted from 0"),
    ],
)
def test_wrong_values_are_refused(change: dict[str, str], message: str) -> None:
    with pytest.raises(RanksMisconfigured, match=message):
        RankPlace.from_environment(TORCHRUN | change)


def test_a_missing_address_is_refused() -> None:
    with pytest.raises(RanksMisconfigured, match="but MASTER_PORT not"):
        RankPlace.from_environment({name: value for name, value in TORCHRUN.items() if name != "MASTER_PORT"})

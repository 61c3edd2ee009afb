from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from laboratory.example_runs import written
from rl4sys.laboratory.run_index.filters import WrongFilter, is_descending, parse_filters, parse_order
from rl4sys.laboratory.run_index.index import Index, Query, open_index
from rl4sys.laboratory.run_index.labels import Labels


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    root = tmp_path / "runs"
    written(root / "ppo-1", [10.0, 450.0], seed=1)
    written(root / "ppo-2", [500.0, 300.0], seed=2)
    written(root / "dqn-1", [100.0], algorithm="dqn", environment="LunarLander-v3", seed=1, finished=False)
    written(root / "sweep" / "new", [], algorithm="dqn", environment="[odd]*-v1")
    Labels(("good", "very-good")).write(root / "ppo-1")
    Labels(("very-good",)).write(root / "ppo-2")
    with open_index(root) as opened:
        yield opened


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["algorithm=PPO"], {"ppo-1", "ppo-2"}),
        (["algorithm=ppo", "return>400"], {"ppo-1"}),
        (["env=CartPole-v1", "best >= 5e2"], {"ppo-2"}),
        (["reward<400", "status!=interrupted"], {"ppo-2"}),
        (["environment=*lander*"], {"dqn-1"}),
        (["env=[odd]?-v1"], {"sweep/new"}),
        (["tag=good"], {"ppo-1"}),
        (["tag!=very-good"], {"dqn-1", "sweep/new"}),
        (["status=interrupted"], {"dqn-1"}),
        (["seed==1", "git=0123"], {"ppo-1", "dqn-1"}),
        (["id=sweep/*"], {"sweep/new"}),
        ([], {"ppo-1", "ppo-2", "dqn-1", "sweep/new"}),
    ],
)
def test_filters_select_the_matching_runs(index: Index, filters: list[str], found: set[str]) -> None:
    query = Query(parse_filters(filters))
    assert {record.id for record in index.select(query)} == found
    assert {json.loads(line)["id"] for line in index.json_lines(query)} == found
    assert index.count(query) == len(found)


def test_json_lines_equal_the_records(index: Index) -> None:
    (index.root / "dqn-1" / "checkpoints" / "1").mkdir()
    (index.root / "dqn-1" / "checkpoints" / "1" / "manifest.json").touch()
    index.sync()
    told = [json.loads(line) for line in index.json_lines()]
    assert told == json.loads(json.dumps([record.json_values(index.root) for record in index.select()]))
    assert {facts["resume"] is None for facts in told} == {True, False}
    assert {type(facts["dirty"]) for facts in told} == {bool}


@pytest.mark.parametrize(
    ("order", "first"),
    [("return", "ppo-1"), ("reward", "ppo-1"), ("best", "ppo-2"), ("name", "dqn-1"), ("seed", "sweep/new")],
)
def test_runs_are_sorted_with_missing_values_last(index: Index, order: str, first: str) -> None:
    ids = [record.id for record in index.select(Query(order=parse_order(order)))]
    assert ids[0] == first
    assert order not in ("return", "best") or ids[-1] == "sweep/new"
    assert [record.id for record in index.select(Query(order=parse_order(order), limit=2))] == ids[:2]


@pytest.mark.parametrize("order", ["return", "best", "steps", "name", "time", "seed"])
def test_an_order_is_reversed_with_missing_values_still_last(index: Index, order: str) -> None:
    found = index.select(Query(order=parse_order(order)))
    back = index.select(Query(order=parse_order(f"-{order}")))
    column = {"return": "last", "time": "created"}.get(order, order)
    values = [value for record in found if (value := getattr(record, column)) is not None]
    assert [getattr(record, column) for record in back][: len(values)] == values[::-1]
    assert is_descending(order) != is_descending(f"-{order}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("algoritm=ppo", "there is no field 'algoritm'; did you mean 'algorithm'?"),
        ("ppo", "'ppo' is not a condition; write a field, an operator and a value"),
        ("return>many", "'many' is not a number"),
        ("algorithm>ppo", "algorithm is a text"),
        ("tag>good", "write tag=good or tag!=good"),
        ("tag=", "write tag=good or tag!=good"),
        ("return=nan", "'nan' is not a number"),
        ("steps>3k", "'3k' is not a number; write one in digits, such as 3000, 3e3"),
        ("status=done", "there is no status 'done'; expected one of running, finished, interrupted, pruned, failed"),
    ],
)
def test_an_invalid_condition_is_refused(text: str, message: str) -> None:
    with pytest.raises(WrongFilter, match=re.escape(message)):
        parse_filters([text])


def test_an_unknown_order_is_refused_with_a_suggestion() -> None:
    with pytest.raises(WrongFilter, match="did you mean 'return'"):
        parse_order("retrun")

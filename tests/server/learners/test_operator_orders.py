from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.server.learners.learner_setup import SetupDamaged
from rl4sys.server.learners.operator_orders import ClientOrder, OperatorOrders


def test_a_learner_without_orders_lets_its_clients_follow(tmp_path: Path) -> None:
    orders = OperatorOrders(tmp_path)
    assert orders.order == ClientOrder("follow", 0)
    assert orders.message() is None
    assert not orders.is_paused


def test_an_order_survives_the_server(tmp_path: Path) -> None:
    given = OperatorOrders(tmp_path, lambda: 12.5).give("off", "bad actions", "ann")
    assert given == ClientOrder("off", 12_500, "bad actions", "ann")
    assert OperatorOrders(tmp_path).order == given


def test_sequences_increase_when_the_clock_goes_back_and_when_the_file_is_lost(tmp_path: Path) -> None:
    first = OperatorOrders(tmp_path, lambda: 100.0).give("off", "why", "ann")
    second = OperatorOrders(tmp_path, lambda: 50.0).give("follow", "", "ann")
    assert second.sequence == first.sequence + 1
    (tmp_path / "orders.json").unlink()
    assert OperatorOrders(tmp_path, lambda: 101.0).give("off", "why", "ann").sequence > second.sequence


def test_pausing_and_orders_are_independent(tmp_path: Path) -> None:
    orders = OperatorOrders(tmp_path)
    orders.give("frozen", "why", "ann")
    orders.pause(True)
    again = OperatorOrders(tmp_path)
    assert again.is_paused
    assert again.order.mode == "frozen"


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"format": 1, "order": {"mode": "on"}, "is_paused": false}'])
def test_a_damaged_file_is_not_taken_for_no_order(tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "orders.json").write_bytes(damage)
    with pytest.raises(SetupDamaged, match="Restore it from a backup"):
        OperatorOrders(tmp_path)

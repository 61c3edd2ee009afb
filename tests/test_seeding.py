from __future__ import annotations

from rl4sys.seeding import Seeds


def test_the_same_root_and_name_give_the_same_numbers() -> None:
    first, second = (Seeds(3).generator("environment", 1).random(4) for _ in range(2))
    assert first.tolist() == second.tolist()


def test_another_root_or_name_gives_other_numbers() -> None:
    integers = {Seeds(root).integer(*name) for root in (0, 1) for name in (("a",), ("b",), ("a", 0), ("a", 1))}
    assert len(integers) == 8


def test_an_integer_fits_63_bits() -> None:
    assert all(0 <= Seeds(root).integer("x") < 2**63 for root in range(100))

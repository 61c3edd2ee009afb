import pytest

from rl4sys.wire import ContractViolation, require_name


@pytest.mark.parametrize("name", ["a", "db-7", "eu_west.cache", "-", "X" * 128])
def test_a_plain_name_is_accepted(name: str) -> None:
    assert require_name("The client id", name) == name


@pytest.mark.parametrize("name", ["", ".", "..", ".hidden", "a/b", "a b", "é", "a\n", "X" * 129, "a\0"])
def test_an_unsafe_name_is_refused(name: str) -> None:
    with pytest.raises(ContractViolation, match="The client id is"):
        require_name("The client id", name)

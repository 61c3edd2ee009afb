"""The range of ports of a server with several processes, and the rule that clients and servers share."""

from __future__ import annotations

import pytest

from rl4sys.client.settings import parse_settings
from rl4sys.wire.port_range import addresses_of, learner_name, own_address, process_of


def test_a_range_names_one_address_for_each_process() -> None:
    assert addresses_of("my-host:50051-50053") == ["my-host:50051", "my-host:50052", "my-host:50053"]
    assert addresses_of("[::1]:1-2") == ["[::1]:1", "[::1]:2"]


@pytest.mark.parametrize("other", ["my-host:50051", "unix:/a-1", "host:5-4", "host:5-5", "host:1-99999", "a-b", "-1"])
def test_what_is_no_range_is_left_as_it_is(other: str) -> None:
    assert addresses_of(other) is None
    assert own_address(other, "a") == other


def test_the_rule_never_changes_since_learners_lie_where_it_says() -> None:
    assert [process_of(name, 4) for name in ("a", "shared~fleet", "b")] == [3, 1, 1]
    assert learner_name("a", "fleet") == "shared~fleet"


def test_settings_with_a_range_name_the_process_of_their_learner() -> None:
    own = parse_settings({"client_id": "a", "server": "my-host:50051-50054"})
    shared = parse_settings({"client_id": "a", "policy_id": "fleet", "server": "my-host:50051-50054"})
    assert (own.server, shared.server) == ("my-host:50054", "my-host:50052")

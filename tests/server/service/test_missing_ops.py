"""What a client's runtime lacks is named when it joins."""

import pytest

from conformance.golden import EPISODES, OPS
from rl4sys.client.shared_session import _HEADS
from rl4sys.policy import COMPILERS, PolicySpec
from rl4sys.server.service.join import policy_for_client
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import training_pb2


def joining(*missing: str) -> training_pb2.JoinRequest:
    return training_pb2.JoinRequest(ops=sorted(COMPILERS.keys() - set(missing)), heads=_HEADS)


def attends() -> PolicySpec:
    return EPISODES["attention_episode"].spec


def test_a_client_without_attention_is_refused_by_name() -> None:
    with pytest.raises(CallFailed, match="needs the op attention, which this client lacks: set decide: server"):
        policy_for_client(joining("attention"), attends())


def test_an_older_client_learns_what_it_would_not_understand() -> None:
    remembers = EPISODES["box_episode"].spec
    with pytest.raises(CallFailed, match="needs chance in programs, the memory of actions, which"):
        policy_for_client(joining("latent", "gate"), remembers)


@pytest.mark.parametrize("name", [*EPISODES, *OPS])
def test_a_client_of_this_version_is_given_every_policy(name: str) -> None:
    assert policy_for_client(joining(), (EPISODES | OPS)[name].spec) is not None

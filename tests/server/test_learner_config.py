from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.server.clients import PPO, ScriptedClient, join_request

from rl4sys.algorithms import ALGORITHMS
from rl4sys.experiments import load_experiment
from rl4sys.server import InProcessTransport
from rl4sys.server.learner_config import resolve
from rl4sys.wire.calls import CallFailed, Code

Serve = Callable[..., InProcessTransport]


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_a_learner_and_a_local_experiment_have_the_same_usual_buffer(algorithm: str) -> None:
    local = load_experiment({"algorithm": {"name": algorithm}, "environment": {"name": "CartPole-v1"}})
    assert resolve(algorithm, {}).buffer == local.buffer
    sized = load_experiment(
        {"algorithm": {"name": algorithm}, "environment": {"name": "CartPole-v1"}, "buffer": {"size": 512}}
    )
    assert resolve(algorithm, {"buffer": {"size": 512}}).buffer == sized.buffer


def test_a_learner_says_what_it_computes_on(serve: Serve) -> None:
    transport = serve()
    ScriptedClient(transport, join_request("a", ("PPO", PPO[1] | {"device": "cpu"})))
    assert transport._service.report().learners[0].device == "cpu"


def test_a_device_that_is_not_there_is_replaced_and_the_log_says_so(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    transport = serve()
    ScriptedClient(transport, join_request("a", ("PPO", PPO[1] | {"device": "cuda:1"})))
    assert transport._service.report().learners[0].device == "cpu"
    assert "computing on 'cpu' instead of 'cuda:1'" in caplog.text


def test_a_device_that_nobody_knows_is_refused(serve: Serve) -> None:
    with pytest.raises(CallFailed, match="device: got 'gpu'") as failed:
        serve().join(join_request("a", ("PPO", {"device": "gpu"})), 10.0)
    assert failed.value.code is Code.INVALID_ARGUMENT

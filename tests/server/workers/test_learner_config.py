from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.server.clients import PPO, ScriptedClient, join_request

from rl4sys.algorithms import ALGORITHMS
from rl4sys.experience import ArraySpec
from rl4sys.experiments import load_experiment
from rl4sys.server import InProcessTransport, ServiceLimits, ServiceOptions
from rl4sys.server.workers.learner_config import resolve
from rl4sys.server.workers.learner_limits import LearnerLimits
from rl4sys.wire.calls import CallFailed, Code

Serve = Callable[..., InProcessTransport]


@pytest.mark.parametrize("algorithm", list(ALGORITHMS))
def test_a_learner_and_a_local_experiment_have_the_same_default_buffer(algorithm: str) -> None:
    local = load_experiment({"algorithm": {"name": algorithm}, "environment": {"name": "CartPole-v1"}})
    assert resolve(algorithm, {}).buffer == local.buffer
    sized = load_experiment(
        {"algorithm": {"name": algorithm}, "environment": {"name": "CartPole-v1"}, "buffer": {"size": 512}}
    )
    assert resolve(algorithm, {"buffer": {"size": 512}}).buffer == sized.buffer


def test_a_learner_reports_its_device(serve: Serve) -> None:
    transport = serve()
    ScriptedClient(transport, join_request("a", ("PPO", PPO[1] | {"device": "cpu"})))
    assert transport._service.current_status().learners[0].device == "cpu"


def test_an_unavailable_device_is_replaced_with_a_log_line(
    serve: Serve, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    transport = serve()
    ScriptedClient(transport, join_request("a", ("PPO", PPO[1] | {"device": "cuda:1"})))
    assert transport._service.current_status().learners[0].device == "cpu"
    assert "computing on 'cpu' instead of 'cuda:1'" in caplog.text


def test_an_unknown_device_is_refused(serve: Serve) -> None:
    with pytest.raises(CallFailed, match="device: got 'gpu'") as failed:
        serve().join(join_request("a", ("PPO", {"device": "gpu"})), 10.0)
    assert failed.value.code is Code.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        ({"type": "mlp", "hidden_dims": [2**27]}, r"network\.actor: got a network of \d+ weights"),
        (
            {"type": "cnn", "filters": [2**15, 1], "kernels": [1, 1], "strides": [1, 8]},
            r"keeps \d+ numbers during a decision",
        ),
        ({"type": "cnn", "kernels": [40, 4, 3]}, r"'pixels' is 64 pixels high and 64 wide.*need at least 68 × 68"),
        ({"type": "cnn", "channels": "first"}, r"'pixels' is 64 pixels high and 3 wide"),
    ],
)
def test_a_network_that_is_too_large_or_does_not_fit_is_refused(
    serve: Serve, network: dict[str, Any], reason: str
) -> None:
    seen = [ArraySpec("pixels", "uint8", (64, 64, 3))]
    generous = ServiceLimits(per_learner=LearnerLimits(weights=1 << 60, memory_bytes=1 << 60))
    with pytest.raises(CallFailed, match=reason) as failed:
        serve(ServiceOptions("threads", limits=generous)).join(
            join_request("a", ("PPO", {"network": {"actor": network}}), observation=seen), 10.0
        )
    assert failed.value.code is Code.INVALID_ARGUMENT

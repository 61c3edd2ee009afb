from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.server.clients import ACTION, OBSERVATION, PPO, ScriptedClient, eventually, join_request
from tests.server.operators import Operator

from rl4sys.client.section import SettingsError
from rl4sys.client.settings import parse_settings
from rl4sys.client.shared_session import join_request as request_of
from rl4sys.config import ConfigError
from rl4sys.experience import ArraySpec
from rl4sys.policy import DiscreteAction
from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.server.service.offered_experiments import OfferedExperiment, OfferedExperiments, read_offered_experiments
from rl4sys.wire import FailureReason
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

SMALL = OfferedExperiment("small", *PPO)
OTHER_OBSERVATION = (ArraySpec("other", "float32", (2,)),)
Serve = Callable[..., InProcessTransport]


def offering(*offers: OfferedExperiment, **choices: bool) -> ServiceOptions:
    return ServiceOptions(workers="threads", offers=OfferedExperiments(offers, **choices))


def asking(client: str, experiment: str, **changes: Any) -> training_pb2.JoinRequest:
    request = join_request(client, None, **changes)
    request.experiment = experiment
    return request


def test_an_experiment_by_name_learns_as_its_settings_do(serve: Serve) -> None:
    transport = serve(offering(SMALL))
    by_name = ScriptedClient(transport, asking("a", "small"))
    in_full = ScriptedClient(transport, join_request("b"))
    np.testing.assert_array_equal(by_name.weights(), in_full.weights())
    assert transport.join(join_request("a"), 10.0).learner == "a"
    assert transport.join(asking("b", "small"), 10.0).learner == "b"


def test_an_experiment_can_define_observation_and_action(serve: Serve) -> None:
    transport = serve(offering(OfferedExperiment("whole", *PPO, OBSERVATION, ACTION)))
    request = asking("a", "whole", observation=())
    request.ClearField("action")
    assert transport.join(request, 10.0).schema.observation[0].name == "queue"


@pytest.mark.parametrize(
    "changes", [{"observation": [ArraySpec("queue", "float32", (9,))]}, {"action": DiscreteAction(7)}]
)
def test_a_client_that_contradicts_the_experiment_is_refused(serve: Serve, changes: dict[str, Any]) -> None:
    transport = serve(offering(OfferedExperiment("whole", *PPO, OBSERVATION, ACTION)))
    with pytest.raises(CallFailed, match="The experiment 'whole'") as failed:
        transport.join(asking("a", "whole", **changes), 10.0)
    assert failed.value.failure.reason is FailureReason.OTHER_LEARNER


def test_an_unknown_experiment_is_refused_with_a_list_of_all(serve: Serve) -> None:
    transport = serve(offering(SMALL, OfferedExperiment("large", "ppo")))
    with pytest.raises(CallFailed, match=r"did you mean 'small'\? Ask for one of: large, small\.") as failed:
        transport.join(asking("a", "smal"), 10.0)
    assert failed.value.code is Code.NOT_FOUND
    with pytest.raises(CallFailed, match="It offers none; name an algorithm"):
        serve().join(asking("a", "small"), 10.0)


def test_a_client_that_asks_for_nothing_gets_the_default(serve: Serve) -> None:
    default = OfferedExperiment("default", *PPO)
    learner = ScriptedClient(serve(offering(default)), join_request("a", None))
    np.testing.assert_array_equal(learner.weights(), ScriptedClient(serve(), join_request("b")).weights())
    with pytest.raises(CallFailed, match="names neither an algorithm nor an experiment"):
        serve(offering(SMALL)).join(join_request("c", None), 10.0)


def test_the_default_experiment_does_not_change_an_existing_learner(serve: Serve) -> None:
    transport = serve(offering(OfferedExperiment("default", "dqn")))
    first = ScriptedClient(transport, join_request("a"))
    assert ScriptedClient(transport, join_request("a", None)).joined.schema_hash == first.joined.schema_hash


def test_client_algorithms_can_be_forbidden(serve: Serve) -> None:
    transport = serve(offering(SMALL, allow_client_algorithms=False))
    with pytest.raises(CallFailed, match="Ask for one of: small") as failed:
        transport.join(join_request("a"), 10.0)
    assert failed.value.code is Code.PERMISSION_DENIED
    assert failed.value.failure.reason is FailureReason.ALGORITHM_FORBIDDEN
    assert ScriptedClient(transport, asking("a", "small")).joined.learner == "a"
    assert ScriptedClient(transport, join_request("a", None)).joined.learner == "a"


def notice(transport: InProcessTransport, request: training_pb2.JoinRequest, text: str) -> bool:
    transport.join(request, 10.0)
    return text in transport._service.current_status().learners[0].notice


def test_a_changed_experiment_keeps_the_learners_that_were_made_from_it(serve: Serve) -> None:
    first = ScriptedClient(serve(offering(SMALL)), asking("a", "small"))
    changed = OfferedExperiment("small", "PPO", PPO[1] | {"checkpoint_frequency": 7}, OTHER_OBSERVATION)
    transport = serve(offering(changed))
    again = ScriptedClient(transport, asking("a", "small"))
    assert again.joined.schema_hash == first.joined.schema_hash
    said = "the experiment 'small' says {'checkpoint_frequency': 7}"
    eventually(lambda: notice(transport, asking("a", "small"), said))
    assert notice(transport, asking("a", "small"), "rl4sys learners set a checkpoint_frequency=7")
    Operator(transport).manage("a", "set", changes={"checkpoint_frequency": "7"})
    transport.join(asking("a", "small"), 10.0)
    assert transport._service.current_status().learners[0].notice == ""


def test_a_renamed_experiment_keeps_the_learners_that_were_made_from_it(serve: Serve) -> None:
    ScriptedClient(serve(offering(SMALL)), asking("a", "small"))
    transport = serve(offering(OfferedExperiment("tiny", *PPO)))
    assert notice(transport, asking("a", "small"), "'small', which the server does not offer any more")
    assert ScriptedClient(transport, asking("a", "tiny")).joined.learner == "a"
    with pytest.raises(CallFailed, match="offers no experiment 'small'"):
        transport.join(asking("b", "small"), 10.0)


def test_another_offered_experiment_is_another_learner(serve: Serve) -> None:
    transport = serve(offering(SMALL, OfferedExperiment("large", "PPO", PPO[1] | {"seed": 6})))
    ScriptedClient(transport, asking("a", "small"))
    with pytest.raises(CallFailed, match=r"learns with \{'seed': 5\}; the experiment 'large' asked for \{'seed': 6\}"):
        transport.join(asking("a", "large"), 10.0)


def test_clients_may_ask_for_the_original_and_for_the_changed_parameters(serve: Serve) -> None:
    transport = serve()
    ScriptedClient(transport, join_request("a"))
    Operator(transport).manage("a", "set", changes={"algorithm.lr": "0.001"})
    changed = (PPO[0], {**PPO[1], "algorithm": {**PPO[1]["algorithm"], "lr": 0.001}})
    for method in (PPO, changed):
        assert transport.join(join_request("a", method), 10.0).learner == "a"
    other = (PPO[0], {**PPO[1], "algorithm": {**PPO[1]["algorithm"], "lr": 0.002}})
    with pytest.raises(CallFailed, match=r"asked for \{'algorithm.lr': 0.002\}"):
        transport.join(join_request("a", other), 10.0)


@pytest.mark.parametrize(
    ("offer", "problem"),
    [
        (
            OfferedExperiment("wrong", "pppo"),
            r"experiments\.wrong: algorithm\.name: unknown algorithm 'pppo'; did you mean 'ppo'",
        ),
        (OfferedExperiment("wrong", "ppo", {"algorithm": {"clip_ration": 1}}), "did you mean 'clip_ratio'"),
        (OfferedExperiment("wrong", "ppo", {"enviroment": {}}), "unknown key"),
        (
            OfferedExperiment("wrong", "dqn", {"buffer": {"type": "trajectory"}}, OBSERVATION, ACTION),
            r"experiments\.wrong",
        ),
    ],
)
def test_a_server_refuses_to_start_with_an_experiment_that_cannot_be_built(
    offer: OfferedExperiment, problem: str
) -> None:
    with pytest.raises(ConfigError, match=problem):
        TrainingService(None, offering(SMALL, offer))


@pytest.mark.slow
def test_a_server_with_worker_processes_checks_experiments_in_another_process() -> None:
    OfferedExperiments([SMALL]).require_sound("processes")
    with pytest.raises(ConfigError, match=r"experiments\.wrong: .* did you mean 'clip_ratio'"):
        OfferedExperiments([SMALL, OfferedExperiment("wrong", "ppo", {"algorithm": {"clip_ration": 1}})]).require_sound(
            "processes"
        )


def test_experiments_are_written_like_client_settings() -> None:
    values = {"algorithm": {"name": "ppo", "lr": 0.1}, "seed": 3, "observation": {"queue": 3}, "action": 2}
    offer = OfferedExperiment("x", "ppo", {"seed": 3, "algorithm": {"lr": 0.1}}, OBSERVATION, ACTION)
    assert read_offered_experiments({"x": values}) == (offer,)
    assert read_offered_experiments({"x": {"algorithm": "ppo"}}) == (OfferedExperiment("x", "ppo"),)
    with pytest.raises(ConfigError, match=r"experiments\.x: algorithm\.name: missing"):
        read_offered_experiments({"x": {}})
    with pytest.raises(ConfigError, match=r"experiments\.\.\./x"):
        read_offered_experiments({"../x": {"algorithm": "ppo"}})


def test_client_settings_can_name_an_experiment() -> None:
    request = request_of(parse_settings({"client_id": "a", "experiment": "small", "seed": 3}), "test")
    assert (request.WhichOneof("method"), request.experiment) == ("experiment", "small")
    with pytest.raises(SettingsError, match="both given"):
        parse_settings({"client_id": "a", "experiment": "small", "algorithm": "ppo"})
    with pytest.raises(SettingsError, match="leave them to the experiment"):
        parse_settings({"client_id": "a", "experiment": "small", "network": {"type": "mlp"}})


def test_a_client_that_names_an_experiment_joins_its_learner(serve: Serve) -> None:
    transport = serve(offering(OfferedExperiment("whole", *PPO, OBSERVATION, ACTION)))
    settings = parse_settings({"client_id": "a", "experiment": "whole"})
    assert transport.join(request_of(settings, "test"), 10.0).learner == "a"

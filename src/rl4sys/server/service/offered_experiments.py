"""Experiments that a server offers by name, so that clients need not configure the learning."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rl4sys.client.section import Section, SettingsError
from rl4sys.client.spaces import described_spaces
from rl4sys.config import ConfigError
from rl4sys.experience import ArraySpec
from rl4sys.policy import ActionSpec
from rl4sys.server.workers.worker import WorkerKind
from rl4sys.suggestions import did_you_mean
from rl4sys.wire import ContractViolation, Failure, FailureReason, encode_action, require_name
from rl4sys.wire.arrays import encode_array
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

DEFAULT = "default"
"""The experiment of clients that ask for none."""
_CHECK_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class OfferedExperiment:
    """An experiment: what a client would send to describe the same learner."""

    name: str
    algorithm: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    observation: tuple[ArraySpec, ...] = ()
    """Empty if each client describes its own."""
    action: ActionSpec | None = None
    """None if each client describes its own."""

    def to_request(self) -> training_pb2.JoinRequest:
        """The experiment as a message."""
        return training_pb2.JoinRequest(
            client=self.name,
            algorithm=training_pb2.Algorithm(name=self.algorithm, parameters_json=json.dumps(self.parameters)),
            observation=map(encode_array, self.observation),
            action=None if self.action is None else encode_action(self.action),
        )


class OfferedExperiments:
    """Experiments by name, and whether a client may choose its own algorithm instead."""

    def __init__(self, offers: Iterable[OfferedExperiment] = (), *, allow_client_algorithms: bool = True) -> None:
        self._offers = {offer.name: offer for offer in offers}
        self.allow_client_algorithms = allow_client_algorithms

    def __bool__(self) -> bool:
        return bool(self._offers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OfferedExperiments):
            return NotImplemented
        mine, its = (self._offers, self.allow_client_algorithms), (other._offers, other.allow_client_algorithms)
        return mine == its

    __hash__ = None  # type: ignore[assignment]  # parameters are dictionaries

    def __contains__(self, name: str) -> bool:
        return name in self._offers

    @property
    def default(self) -> OfferedExperiment | None:
        """The experiment of clients that ask for none."""
        return self._offers.get(DEFAULT)

    def find(self, name: str) -> OfferedExperiment:
        """The experiment of this name, or NOT_FOUND with a list of all."""
        offer = self._offers.get(name)
        if offer is None:
            asked = name[:128]
            advice = self._listed() if self else "It offers none; name an algorithm instead."
            raise CallFailed(
                Code.NOT_FOUND,
                f"This server offers no experiment '{asked}'{did_you_mean(asked, self._offers) or '.'} {advice}",
            )
        return offer

    def refuse_algorithm(self, name: str) -> CallFailed:
        """The error for a client that names an algorithm where it may not."""
        advice = self._listed() if self else "It offers none yet: ask its operator for one."
        return CallFailed(
            Code.PERMISSION_DENIED,
            f"This server accepts no algorithm from clients (got '{name[:128]}'), only the experiments that it offers. "
            f"{advice}",
            Failure(FailureReason.ALGORITHM_FORBIDDEN),
        )

    def require_sound(self, workers: WorkerKind, plugins: tuple[str, ...] = ()) -> None:
        """Raise `ConfigError` for a plug-in that cannot be loaded, or the first experiment that cannot be built.

        The check needs torch: with worker processes it runs in a process of its own.
        """
        if not self and not plugins:
            return
        requests = [offer.to_request().SerializeToString() for offer in self._offers.values()]
        if workers == "threads":
            # Here and not above: a server with worker processes never imports torch.
            from rl4sys.server.service.experiment_check import problems

            found = problems(requests, plugins)
        else:
            found = _problems_in_subprocess(requests, plugins)
        for name, problem in found.items():
            raise ConfigError(f"experiments.{name}: {problem}" if name else f"plugins: {problem}")

    def _listed(self) -> str:
        return f"Ask for one of: {', '.join(sorted(self._offers))}."


def read_offered_experiments(experiments: Mapping[str, Mapping[str, Any]]) -> tuple[OfferedExperiment, ...]:
    """The experiments of a server's config."""
    offers = []
    for name, values in experiments.items():
        try:
            offers.append(_offer(require_name("The experiment's name", name), values))
        except (ConfigError, SettingsError, ContractViolation) as error:
            raise ConfigError(f"experiments.{name}: {error}") from error
    return tuple(offers)


def _offer(name: str, values: Mapping[str, Any]) -> OfferedExperiment:
    section = Section(values)
    given = section.raw("algorithm", {})
    chosen = Section({"name": given} if isinstance(given, str) else given, "algorithm")
    algorithm = chosen.text("name")
    if not algorithm:
        raise ConfigError("algorithm.name: missing; name an algorithm, such as ppo")
    observation, action = described_spaces(section)
    parameters = section.rest()
    if hyperparameters := chosen.rest():
        parameters["algorithm"] = hyperparameters
    return OfferedExperiment(name, algorithm, parameters, observation, action)


def _problems_in_subprocess(requests: list[bytes], plugins: tuple[str, ...]) -> dict[str, str]:
    answer = subprocess.run(
        [sys.executable, "-m", "rl4sys.server.service.experiment_check"],
        input=json.dumps({"requests": [request.hex() for request in requests], "plugins": plugins}),
        capture_output=True,
        text=True,
        timeout=_CHECK_SECONDS,
        check=False,
    )
    if answer.returncode != 0:
        raise ConfigError(f"experiments: they could not be checked. {answer.stderr.strip()}")
    found: dict[str, str] = json.loads(answer.stdout)
    return found

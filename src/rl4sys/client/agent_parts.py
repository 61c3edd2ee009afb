"""Makes parts of an agent from its settings, and checks that they fit together."""

from __future__ import annotations

import logging
from functools import partial

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.bad_input import BadInputChoice
from rl4sys.client.client_settings import ClientSettings
from rl4sys.client.decision_place import DecisionPlace
from rl4sys.client.decision_times import DecisionTimes
from rl4sys.client.delivery import AnyOutbox
from rl4sys.client.fallback import Fallback, FallbackDecider
from rl4sys.client.governor import Governor
from rl4sys.client.native_acting import NativeActing
from rl4sys.client.policy_cache import MakeInterface
from rl4sys.client.policy_interface import PolicyInterface
from rl4sys.client.section import SettingsError
from rl4sys.client.server_policy import MakeServerInterface
from rl4sys.client.shared_session import unwanted
from rl4sys.client.snapshot import Snapshot
from rl4sys.policy import NUMPY, NativeUnavailable, kernel_set
from rl4sys.records import DiskOutbox, Outbox, OutboxLimits

_log = logging.getLogger(__name__)


def outbox_for(settings: ClientSettings, epoch: int) -> AnyOutbox:
    """On disk if the settings name a directory, else in memory."""
    limits = OutboxLimits(settings.outbox_bytes, settings.overflow)
    if settings.outbox is None:
        return Outbox(epoch, limits)
    try:
        return DiskOutbox(settings.outbox, epoch, limits)
    except OSError as error:
        raise SettingsError(f"outbox: {settings.outbox} cannot be used: {error.strerror or error}.") from error


def client_kernels(settings: ClientSettings) -> str:
    """The kernel set that the settings ask for."""
    try:
        return kernel_set(settings.runtime)
    except NativeUnavailable as error:
        raise SettingsError(f"runtime: {error}") from error


def native_acting(kernels: str, governor: Governor, times: DecisionTimes) -> NativeActing | None:
    """What decides in the common case; None with numpy."""
    return None if kernels == NUMPY else NativeActing(kernels.removeprefix("native-"), governor, times)


def local_interface(settings: ClientSettings, status: AgentStatus) -> MakeInterface:
    """Makes the interface of policies that the client decides with by itself."""
    return partial(
        PolicyInterface.of,
        mode=settings.mode,
        defaults=settings.defaults,
        structure=settings.action_structure,
        on_default=partial(status.add, "defaulted_inputs"),
    )


def server_interface(settings: ClientSettings, status: AgentStatus) -> MakeServerInterface:
    """Makes the interface of a policy that decides on the server."""
    return partial(
        PolicyInterface,
        policies=None,
        defaults=settings.defaults,
        structure=settings.action_structure,
        on_default=partial(status.add, "defaulted_inputs"),
    )


def decider_for(settings: ClientSettings, fallback: Fallback | None) -> FallbackDecider | None:
    """What calls the fallback, if there is one."""
    if fallback is None:
        return None
    return FallbackDecider(fallback, settings.action, settings.action_structure, settings.observation)


def bad_input_choice(settings: ClientSettings, fallback: Fallback | None) -> BadInputChoice:
    """What `act` does with a bad input; the settings are refused where they need a fallback and there is none."""
    choice = settings.on_bad_input
    if choice is BadInputChoice.FALLBACK and fallback is None:
        raise SettingsError("on_bad_input: got fallback, but there is none. Pass `fallback=` to connect.")
    if settings.mode is ActingMode.OBSERVE and fallback is None:
        raise SettingsError(
            "mode: got observe, in which the fallback acts, but there is none. Pass `fallback=` to connect."
        )
    if settings.decide is DecisionPlace.SERVER and fallback is None:
        raise SettingsError(
            "decide: got server, but there is no fallback for the time that it does not answer. Pass `fallback=` to "
            "connect."
        )
    return choice or (BadInputChoice.RAISE if fallback is None else BadInputChoice.FALLBACK)


def fitting_policy(snapshot: Snapshot | None, settings: ClientSettings) -> Snapshot | None:
    """A cached policy, if it observes and acts as the settings ask for."""
    if snapshot is None:
        return None
    form, action = snapshot.interface.form, snapshot.interface.action
    problem = unwanted(form.schema.observation, action, settings)
    if problem:
        _log.warning("The cached policy of '%s' is not used: %s", snapshot.learner, problem)
        return None
    return snapshot

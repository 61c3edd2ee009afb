"""The settings of a client: its identity, the server, the algorithm, the spaces, and limits."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.bad_input import BadInputChoice
from rl4sys.client.decision_place import DecisionPlace
from rl4sys.client.feature_defaults import feature_defaults
from rl4sys.client.original_settings import is_original, translate
from rl4sys.client.reward_window import DEFAULT_REWARD_WINDOW, RewardWindow, reward_window_from_settings
from rl4sys.client.section import Section, SettingsError, shown
from rl4sys.client.spaces import (
    action_structure_from_settings,
    described_spaces,
)
from rl4sys.client.tokens import read_token
from rl4sys.experience import ArraySpec
from rl4sys.policy import ActionSpec, ActionStructure
from rl4sys.records import Overflow
from rl4sys.wire import ContractViolation, require_name
from rl4sys.wire.addresses import host_and_port
from rl4sys.wire.port_range import learner_name, own_address

DEFAULT_SERVER = "127.0.0.1:50051"


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files for a TLS connection."""

    ca: Path | None = None
    """Certificate authority of the server; absent for those that the system trusts."""
    cert: Path | None = None
    """Client certificate, for servers that require one; needs `key`."""
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """All settings that `rl4sys.connect` reads."""

    client_id: str
    """The permanent name of the client; its experience is stored under it."""
    server: str = DEFAULT_SERVER
    """`host:port`, `unix:/path/of/socket` or `inproc://name`."""
    token: str | None = field(default=None, repr=False)
    """Sent with every call; from `token` or the first line of `token_file`."""
    token_file: Path | None = None
    """The file of the token. It is read again when it changes."""
    tls: Tls | None = None
    insecure: bool = False
    """Allow a token to be sent to another machine unencrypted."""
    policy_id: str = ""
    """Clients with the same policy_id share one learner; empty for a learner of its own."""
    algorithm: str = ""
    """The algorithm to learn with; empty for that of the existing learner or the server's default."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the learner: its sections `algorithm`, `network` and `buffer`, and its `seed`."""
    experiment: str = ""
    """The name of an experiment that the server offers, instead of an algorithm."""
    observation: tuple[ArraySpec, ...] = ()
    action: ActionSpec | None = None
    action_structure: ActionStructure | None = field(default=None, compare=False)
    """The named or nested parts of the action, which `act` then returns."""
    timeout: float = 10.0
    """Seconds that `connect` waits for the server, and that each call may take."""
    outbox: Path | None = None
    """Directory for unsent experience, so that it survives a killed client; absent to keep it in memory."""
    outbox_bytes: int = 64 << 20
    """Most bytes of unsent experience. More bridges a longer outage of the server."""
    overflow: Overflow = Overflow.DROP_OLDEST
    """What happens when the outbox is full. Only with `block` can `act` and `end` have to wait."""
    cache: Path | None = None
    """Directory for the newest policy, to start from while the server is unreachable."""
    max_segment_length: int = 256
    """Most steps of one segment. More means fewer, later and larger segments."""
    reward_window: RewardWindow = DEFAULT_REWARD_WINDOW
    """Newest decisions of an episode that can still receive rewards, or a time such as `30s`. More delays sending."""
    send_interval: float = 0.2
    """Most seconds that experience waits before it is sent. More makes fewer, larger messages."""
    send_frequency: int | None = None
    """Send sooner, after this many ended episodes."""
    on_bad_input: BadInputChoice | None = None
    """What `act` does with an observation that has NaN, infinity, a missing array or a wrong shape, or for which the
    policy's decision is not finite: `raise`, `fallback` or `hold`. Absent: the fallback if there is one, else raise."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Values of arrays that an observation leaves out and of features that are NaN, by array: a number, or a list of
    the array's shape with null for features that have none. Also `observation: {NAME: {shape: …, default: …}}`."""
    kill_file: Path | None = None
    """While this file exists, the policy is off: the fallback decides."""
    lease: float | None = None
    """Seconds after which the policy is off if nothing was heard of the server, until it is heard again."""
    mode: ActingMode = ActingMode.EXPLORE
    """`explore` (act, record and learn), `exploit` (act with the best guess and record nothing) or `observe` (the
    fallback acts, and the policy is compared with it)."""
    decide: DecisionPlace = DecisionPlace.LOCAL
    """`local` (the client decides with a copy of the policy) or `server` (each decision asks the server, and the
    fallback decides when it does not answer in time)."""
    decide_timeout: float = 0.1
    """Most seconds that `act` waits for the server with `decide: server`. More tolerates a slower server."""
    seed: int | None = None
    """Seed of the exploration noise and of the learner. Absent: another noise at every start."""


def load_settings(source: str | Path | Mapping[str, Any] | ClientSettings) -> ClientSettings:
    """Settings from a JSON or YAML file or a mapping, with the present names or those of the original configs."""
    if isinstance(source, ClientSettings):
        return source
    if isinstance(source, Mapping):
        return parse_settings(source)
    path = Path(source)
    values = read_settings_file(path)
    try:
        return parse_settings(values, path.parent)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def read_settings_file(path: str | Path) -> Mapping[str, Any]:
    """The values of a JSON or YAML file, unchecked."""
    try:
        return _read(Path(path))
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def parse_settings(values: Mapping[str, Any], directory: Path = Path()) -> ClientSettings:
    """Typed settings; paths are relative to `directory`."""
    if is_original(values):
        values = translate(values)
    section = Section(values)
    tls = section.section("tls") if "tls" in section else None
    algorithm, parameters = _algorithm(section)
    observation, action = described_spaces(section)
    settings = ClientSettings(
        client_id=_name("client_id", section.text("client_id") or _host()),
        server=section.text("server", DEFAULT_SERVER) or DEFAULT_SERVER,
        token=_token(section, directory),
        token_file=_path(section, "token_file", directory),
        tls=None if tls is None else Tls(*(_path(tls, name, directory) for name in ("ca", "cert", "key"))),
        insecure=section.raw("insecure", False) is True,
        policy_id=_name("policy_id", section.text("policy_id")),
        algorithm=algorithm,
        parameters=parameters,
        experiment=section.text("experiment") or "",
        observation=observation,
        action=action,
        action_structure=None
        if section.raw("action") is None
        else action_structure_from_settings(section.raw("action")),
        timeout=section.number("timeout", 10.0, 0.001) or 10.0,
        outbox=_path(section, "outbox", directory),
        outbox_bytes=section.whole("outbox_bytes", 64 << 20, 1024) or 0,
        overflow=Overflow(section.choice("overflow", list(Overflow), Overflow.DROP_OLDEST)),
        cache=_path(section, "cache", directory),
        max_segment_length=section.whole("max_segment_length", 256, 1) or 1,
        reward_window=reward_window_from_settings(section.raw("reward_window"), section.raw("reward_timeout")),
        send_interval=section.number("send_interval", 0.2) or 0.0,
        send_frequency=section.whole("send_frequency", None, 1),
        on_bad_input=_on_bad_input(section),
        defaults=feature_defaults(section.raw("defaults"), section.raw("observation"), observation),
        kill_file=_path(section, "kill_file", directory),
        lease=section.number("lease", None, 0.1),
        mode=ActingMode(section.choice("mode", list(ActingMode), ActingMode.EXPLORE)),
        decide=DecisionPlace(section.choice("decide", list(DecisionPlace), DecisionPlace.LOCAL)),
        decide_timeout=section.number("decide_timeout", 0.1, 0.001) or 0.1,
        seed=section.whole("seed"),
    )
    section.finish(("tls",))
    if tls:
        tls.finish()
    # Of a server with several processes, one has the learner of this client.
    server = own_address(settings.server, learner_name(settings.client_id, settings.policy_id))
    settings = replace(settings, server=server)
    _require_address(settings.server)
    if settings.algorithm and settings.experiment:
        raise SettingsError("algorithm and experiment are both given; name an experiment, or describe an algorithm.")
    if settings.token and not (settings.token.isascii() and settings.token.isprintable()):
        raise SettingsError(
            "token: it contains characters other than printable ASCII, which cannot be sent. Correct it."
        )
    has_token = bool(settings.token) or settings.token_file is not None
    if has_token and settings.tls is None and not settings.insecure and not _is_local(settings.server):
        raise SettingsError(
            f"server: the token would be sent to {settings.server} unencrypted. Add `tls: {{ca: FILE}}`, or "
            f"`insecure: true` if the network itself is safe."
        )
    return settings


def _on_bad_input(section: Section) -> BadInputChoice | None:
    if section.raw("on_bad_input") is None:
        return None
    return BadInputChoice(section.choice("on_bad_input", list(BadInputChoice), ""))


def _require_address(server: str) -> None:
    if server.startswith(("unix:", "inproc://")):
        return
    _, port = host_and_port(server) or ("", 0)
    if port == 0:
        raise SettingsError(
            f"server: got '{server}'; expected host:port, such as {DEFAULT_SERVER}, host:first-last for a server of "
            f"several processes, unix:/path or inproc://name."
        )


def _is_local(server: str) -> bool:
    return server.startswith(("unix:", "inproc:", "localhost:", "127.", "[::1]:"))


def _algorithm(section: Section) -> tuple[str, dict[str, Any]]:
    """The name of the algorithm, and the parameters of the learner as the server reads them."""
    given = section.raw("algorithm", {})
    part = Section({"name": given} if isinstance(given, str) else given, "algorithm")
    name = part.text("name") or ""
    parameters: dict[str, Any] = {}
    if chosen := part.rest():
        parameters["algorithm"] = chosen
    for other in ("network", "buffer"):
        if (value := section.raw(other)) is not None:
            parameters[other] = Section(value, other).rest()
    for switch in ("normalize_obs", "normalize_reward"):
        if (value := section.raw(switch)) is not None:
            parameters[switch] = value
    if parameters and not name:
        advice = "leave them to the experiment" if "experiment" in section else "add algorithm.name"
        raise SettingsError(f"Parameters {sorted(parameters)} are given without an algorithm; {advice}.")
    if name and (seed := section.whole("seed")) is not None:
        parameters["seed"] = seed
    return name, parameters


def _read(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text()
    except OSError as error:
        raise SettingsError(
            f"the file cannot be read: {error.strerror}. Give the path of a JSON or YAML file."
        ) from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"the file is not text: {error}. Give the path of a JSON or YAML file.") from error
    try:
        values = _yaml(text) if path.suffix in (".yaml", ".yml") else json.loads(text)
    except json.JSONDecodeError as error:
        raise SettingsError(
            f"the file is not valid JSON: {error}. Correct it, or name the file .yaml if it is YAML."
        ) from error
    if not isinstance(values, Mapping):
        raise SettingsError(f"got {shown(values)}; expected a mapping of names to values.")
    return values


def _yaml(text: str) -> Any:
    try:
        import yaml
    except ModuleNotFoundError as error:
        raise SettingsError("YAML needs the package PyYAML: pip install pyyaml, or write the file as JSON.") from error
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SettingsError(f"the file is not valid YAML: {error}.") from error


def _token(section: Section, directory: Path) -> str | None:
    token, path = section.text("token"), _path(section, "token_file", directory)
    if token is not None and path is not None:
        raise SettingsError("token and token_file are both given; keep one of them.")
    if path is None:
        return token
    try:
        return read_token(path)
    except OSError as error:
        raise SettingsError(f"token_file: {path} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"token_file: {path} is not text: {error.reason}.") from error


def _path(section: Section, name: str, directory: Path) -> Path | None:
    text = section.text(name)
    return None if text is None else directory / Path(text).expanduser()


def _name(what: str, name: str | None) -> str:
    if not name:
        return ""
    try:
        return require_name(what, name)
    except ContractViolation as error:
        raise SettingsError(str(error)) from error


def _host() -> str:
    """The host name, which names a client without a client_id."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in socket.gethostname()).lstrip(".")

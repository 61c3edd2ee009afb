"""Reads the settings of a client from a file or a mapping, and checks them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.bad_input import BadInputChoice
from rl4sys.client.client_settings import DEFAULT_SERVER, ClientSettings, Tls
from rl4sys.client.decision_place import DecisionPlace
from rl4sys.client.feature_defaults import feature_defaults
from rl4sys.client.original_settings import is_original, translate
from rl4sys.client.reward_window import reward_window_from_settings
from rl4sys.client.section import Section, SettingsError, shown
from rl4sys.client.settings_check import checked
from rl4sys.client.spaces import (
    action_structure_from_settings,
    described_spaces,
)
from rl4sys.client.tokens import read_token
from rl4sys.policy import RuntimeChoice
from rl4sys.records import Overflow


def load_settings(source: str | Path | Mapping[str, Any] | ClientSettings) -> ClientSettings:
    """Settings from a JSON or YAML file or a mapping, with the present names or those of the original configs."""
    if isinstance(source, ClientSettings):
        return checked(source)
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
        client_id=section.text("client_id") or "",
        server=section.text("server", DEFAULT_SERVER) or DEFAULT_SERVER,
        token=_token(section, directory),
        token_file=_path(section, "token_file", directory),
        tls=None if tls is None else Tls(*(_path(tls, name, directory) for name in ("ca", "cert", "key"))),
        insecure=section.raw("insecure", False) is True,
        policy_id=section.text("policy_id") or "",
        algorithm=algorithm,
        parameters=parameters,
        experiment=section.text("experiment") or "",
        observation=observation,
        action=action,
        action_structure=None
        if section.raw("action") is None
        else action_structure_from_settings(section.raw("action")),
        timeout=section.number("timeout", 10.0, 0.001) or 10.0,
        call_timeout=section.number("call_timeout", None, 0.001),
        close_timeout=section.number("close_timeout", 10.0, 0.0) or 0.0,
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
        runtime=RuntimeChoice(section.choice("runtime", list(RuntimeChoice), RuntimeChoice.AUTO)),
        seed=section.whole("seed"),
    )
    section.finish(("tls",))
    if tls:
        tls.finish()
    return checked(settings)


def _on_bad_input(section: Section) -> BadInputChoice | None:
    if section.raw("on_bad_input") is None:
        return None
    return BadInputChoice(section.choice("on_bad_input", list(BadInputChoice), ""))


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

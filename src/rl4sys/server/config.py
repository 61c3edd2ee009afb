"""What `rl4sys serve --config` reads, and how it becomes the options of a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field

from rl4sys.config import Config, ConfigError, packaged_configs, parse, read
from rl4sys.records import Durability
from rl4sys.server.logs import LogFormat
from rl4sys.server.options import DEFAULT_DATA, ServiceLimits, ServiceOptions
from rl4sys.server.service.offered_experiments import OfferedExperiments, read_offered_experiments
from rl4sys.server.transport.grpc_server import DEFAULT_LISTEN, ServerOptions
from rl4sys.server.workers.worker import WorkerKind

_FILES = ("data", "token_file", "tls_cert", "tls_key", "tls_client_ca")


class ServerConfig(Config):
    """A training server, as YAML or JSON describes it. Relative paths begin at the file that is served."""

    listen: str = DEFAULT_LISTEN
    """HOST:PORT (port 0: any free one), or unix:PATH."""
    data: Path = DEFAULT_DATA
    """Where learners live: their logs, checkpoints and curves, and the server's log."""
    token_file: Path | None = None
    """Lines of a token, options, and the client ids that may use it; null lets everybody in."""
    tls_cert: Path | None = None
    """The server's certificate (PEM); goes with `tls_key`."""
    tls_key: Path | None = None
    """Its private key (PEM)."""
    tls_client_ca: Path | None = None
    """If given, clients must show a certificate of this authority (PEM)."""
    insecure: bool = False
    """Listen beyond this machine without TLS or tokens, on purpose."""
    workers: WorkerKind = "processes"
    """Where learners run: each in a process of its own, or in threads of the server."""
    durability: Durability = Durability.FSYNC
    """What an acknowledgement survives: `fsync` a power cut, `os` a kill, `memory` nothing."""
    experiments: dict[str, dict[str, Any]] = {}
    """Experiments that clients may ask for by name: `algorithm`, `network`, `buffer`, …, and where the server knows it
    `observation` and `action`; or the path of a file with these. `default` is for clients that ask for none."""
    plugins: tuple[str, ...] = ()
    """Your own Python files (beside this one) or modules, whose algorithms, networks and buffers learners may have."""
    allow_client_algorithms: bool = True
    """Whether clients may bring an algorithm with parameters of their own. If not, they must ask for an experiment."""
    metrics_port: int | None = Field(None, ge=0, le=65_535)
    """Serve metrics for Prometheus over HTTP on this port (0: any free one). They have neither TLS nor tokens, so they
    are for this machine alone, unless the server is `insecure`."""
    log_format: LogFormat = "text"
    """How log lines look; `json` is one object a line."""
    debug: bool = False
    """Log more."""
    limits: ServiceLimits = ServiceLimits()
    """Queues, quotas and waits."""


def load_config(path: Path | None, given: Mapping[str, Any]) -> ServerConfig:
    """The config of a file and of the command line, which wins. Its paths begin where they are meant to."""
    values: dict[str, Any] = {}
    if path is not None:
        loaded = read(path, (), (packaged_configs(), packaged_configs() / "servers"))
        values = _complete(loaded.values, loaded.sources[-1].parent)
    return parse(ServerConfig, {**values, **given}, path)


def server_options(config: ServerConfig) -> ServerOptions:
    """What a server is made from. `ConfigError` and `ImpossibleSetup` say what is wrong with it."""
    offers = OfferedExperiments(
        read_offered_experiments(config.experiments), allow_client_algorithms=config.allow_client_algorithms
    )
    return ServerOptions(
        listen=config.listen,
        data=config.data,
        token_file=config.token_file,
        tls_cert=config.tls_cert,
        tls_key=config.tls_key,
        tls_client_ca=config.tls_client_ca,
        insecure=config.insecure,
        metrics_port=config.metrics_port,
        service=ServiceOptions(
            workers=config.workers,
            durability=config.durability,
            limits=config.limits,
            offers=offers,
            plugins=config.plugins,
        ),
    )


def _complete(values: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Paths from the root, and experiments with what they extend."""
    paths = {name: values[name] for name in _FILES if isinstance(values.get(name), str)}
    values |= {name: directory / Path(text).expanduser() for name, text in paths.items()}
    if isinstance(plugins := values.get("plugins"), list):
        values["plugins"] = [_plugin(each, directory) for each in plugins]
    if isinstance(experiments := values.get("experiments"), dict):
        values["experiments"] = {name: _experiment(name, each, directory) for name, each in experiments.items()}
    return values


def _plugin(plugin: Any, directory: Path) -> Any:
    """A file by its whole path: workers may start elsewhere."""
    is_file = isinstance(plugin, str) and plugin.endswith(".py")
    return str((directory / Path(plugin).expanduser()).resolve()) if is_file else plugin


def _experiment(name: str, source: Any, directory: Path) -> Any:
    if not isinstance(source, str | dict):
        return source
    try:
        place = directory / source if isinstance(source, str) else source
        return read(place, (), (directory, packaged_configs())).values
    except ConfigError as error:
        raise ConfigError(f"experiments.{name}: {error}") from error

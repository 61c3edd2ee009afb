"""The config of `rl4sys serve --config`, and the server options made from it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from rl4sys.config import Config, ConfigError, packaged_configs, parse, read
from rl4sys.records import Durability
from rl4sys.server.alert_config import ServerAlertConfig, require_distinct, with_defaults
from rl4sys.server.logs import LogFormat
from rl4sys.server.options import DEFAULT_DATA, ServiceLimits, ServiceOptions
from rl4sys.server.original_config import is_original_config, translate_config
from rl4sys.server.process_part import ONLY_PROCESS, ProcessPart
from rl4sys.server.service.offered_experiments import OfferedExperiments, read_offered_experiments
from rl4sys.server.transport.grpc_server import DEFAULT_LISTEN, DEFAULT_METRICS_NAMES, ServerOptions
from rl4sys.server.workers.ray_bridge import RayPlace
from rl4sys.server.workers.worker import WorkerKind

_FILES = ("data", "token_file", "tls_cert", "tls_key", "tls_client_ca")


class ServerConfig(Config):
    """A training server in YAML or JSON. Relative paths start at the directory of the config file."""

    listen: str = DEFAULT_LISTEN
    """HOST:PORT (port 0: any free one), or unix:PATH."""
    data: Path = DEFAULT_DATA
    """The data directory: logs, checkpoints and curves of the learners, and the log of the server."""
    token_file: Path | None = None
    """A file with one token per line, its options and the client ids that may use it; null lets every client in."""
    tls_cert: Path | None = None
    """The server's certificate (PEM); goes with `tls_key`."""
    tls_key: Path | None = None
    """Its private key (PEM)."""
    tls_client_ca: Path | None = None
    """If given, clients must present a certificate of this authority (PEM)."""
    insecure: bool = False
    """Accept connections from other machines without TLS or tokens, on purpose."""
    processes: int | None = Field(None, ge=1)
    """Number of processes to serve with: each has its own port, counted from that of `listen`, and its part of the
    learners in `data/process-0`, …; clients give the range, `server: HOST:50051-50054`. Learners move to where they
    belong when the number changes; 1 brings all back together. Limits hold for each process."""
    workers: WorkerKind = "processes"
    """Where learners run: each in a process of its own, in threads of the server, or on the nodes of a Ray cluster."""
    address: str | None = None
    """The Ray cluster for `workers: ray`: `auto`, or HOST:6379. Null starts Ray on this machine."""
    worker_cpus: float = Field(1.0, gt=0)
    """Cores of a node that a worker on Ray reserves."""
    worker_gpus: float = Field(0.0, ge=0)
    """GPUs of a node that a worker on Ray reserves."""
    durability: Durability = Durability.FSYNC
    """What an acknowledgement survives: `fsync` a power cut, `os` a kill, `memory` nothing."""
    experiments: dict[str, dict[str, Any]] = {}
    """Experiments that clients may ask for by name: `algorithm`, `network`, `buffer`, …, and optionally `observation`
    and `action`; or the path of a file with these. Clients that ask for none get `default`."""
    plugins: tuple[str, ...] = ()
    """Your own Python files (relative to this one) or modules with algorithms, networks and buffers for learners."""
    allow_client_algorithms: bool = True
    """Whether clients may choose an algorithm and its parameters. If not, they must ask for an experiment."""
    metrics_port: int | None = Field(None, ge=0, le=65_535)
    """Serve Prometheus metrics over HTTP on this port (0: any free one). There is neither TLS nor a token, so only this
    machine can read them, unless the server is `insecure`."""
    metrics_listen: str | None = None
    """Serve them on this HOST:PORT instead. If other machines can connect to it, it is HTTPS with the server's
    certificate, and `/metrics` needs a token of the token file (`role=viewer` is enough)."""
    metrics_names: int = Field(DEFAULT_METRICS_NAMES, ge=1)
    """Learners, and clients, that have metrics of their own; the others are summed as `(other)`."""
    log_format: LogFormat = "text"
    """The format of log lines; `json` writes one object per line."""
    debug: bool = False
    """Log debug messages as well."""
    limits: ServiceLimits = ServiceLimits()
    """Limits of queues, quotas and waiting times."""
    alerts: tuple[ServerAlertConfig, ...] = ()
    """Conditions to watch for, such as `{when: learner/mean_return < 100, for: 600}`, besides the built-in ones."""
    default_alerts: bool = True
    """Whether the built-in alerts are watched for, too."""

    @field_validator("alerts")
    @classmethod
    def _have_names_of_their_own(cls, alerts: tuple[ServerAlertConfig, ...]) -> tuple[ServerAlertConfig, ...]:
        require_distinct(alerts)
        return alerts


def load_config(path: Path | None, given: Mapping[str, Any]) -> ServerConfig:
    """The config of a file, overridden by the command line. Paths of the file are relative to it.

    The global config of the original RL4Sys is read as well.
    """
    values: dict[str, Any] = {}
    if path is not None:
        loaded = read(path, (), (packaged_configs(), packaged_configs() / "servers"))
        found = translate_config(loaded.values) if is_original_config(loaded.values) else loaded.values
        values = _complete(found, loaded.sources[-1].parent)
    return parse(ServerConfig, {**values, **given}, path)


def server_options(config: ServerConfig, part: ProcessPart = ONLY_PROCESS) -> ServerOptions:
    """The options of a server, or of one of its processes.

    Raises `ConfigError` or `ImpossibleSetup` if the config cannot be served.
    """
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
        metrics_listen=config.metrics_listen,
        metrics_names=config.metrics_names,
        service=ServiceOptions(
            workers=config.workers,
            part=part,
            ray=RayPlace(config.address, config.worker_cpus, config.worker_gpus),
            durability=config.durability,
            limits=config.limits,
            offers=offers,
            plugins=config.plugins,
            alerts=with_defaults(config.alerts) if config.default_alerts else config.alerts,
        ),
    )


def _complete(values: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Values with absolute paths, and with experiments read from their files."""
    paths = {name: values[name] for name in _FILES if isinstance(values.get(name), str)}
    values |= {name: directory / Path(text).expanduser() for name, text in paths.items()}
    if isinstance(plugins := values.get("plugins"), list):
        values["plugins"] = [_plugin(each, directory) for each in plugins]
    if isinstance(experiments := values.get("experiments"), dict):
        values["experiments"] = {name: _experiment(name, each, directory) for name, each in experiments.items()}
    return values


def _plugin(plugin: Any, directory: Path) -> Any:
    """A file by its absolute path: workers may run in another directory."""
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

"""The training server: clients join, push segments and pull weights; learners train on what the log holds."""

from pathlib import Path

from rl4sys.server.access.caller import ANYONE, Caller, Role
from rl4sys.server.options import ImpossibleSetup, ServiceLimits, ServiceOptions
from rl4sys.server.service.training_service import TrainingService
from rl4sys.server.transport.grpc_server import GrpcServer, ServerOptions
from rl4sys.server.transport.in_process import InProcessTransport
from rl4sys.server.transport.server_process import serve

# `python -m rl4sys.server.server`, as the original was started.
__path__.append(str(Path(__file__).parents[1] / "original" / "server"))

__all__ = [
    "ANYONE",
    "Caller",
    "GrpcServer",
    "ImpossibleSetup",
    "InProcessTransport",
    "Role",
    "ServerOptions",
    "ServiceLimits",
    "ServiceOptions",
    "TrainingService",
    "serve",
]

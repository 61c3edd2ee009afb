"""The training server: remote clients join, push segments and pull weights; learners fold the log."""

from rl4sys.server.callers import ANYONE, Caller
from rl4sys.server.in_process import InProcessTransport
from rl4sys.server.limits import ServiceLimits
from rl4sys.server.options import ImpossibleSetup, ServiceOptions
from rl4sys.server.service import TrainingService
from rl4sys.server.serving import GrpcServer, ServerOptions, serve

__all__ = [
    "ANYONE",
    "Caller",
    "GrpcServer",
    "ImpossibleSetup",
    "InProcessTransport",
    "ServerOptions",
    "ServiceLimits",
    "ServiceOptions",
    "TrainingService",
    "serve",
]

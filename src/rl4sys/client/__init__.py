"""The light client: acts inside a live system with a policy that a training server improves. Imports no torch."""

from rl4sys.client.agent import Agent
from rl4sys.client.async_connection import connect_async
from rl4sys.client.client_settings import ClientSettings, Tls
from rl4sys.client.connection import ConnectError, connect, publish_in_process, withdraw_in_process
from rl4sys.client.environment_loop import run_environment
from rl4sys.client.episode import Episode, EpisodeEnded
from rl4sys.client.fallback import FallbackFailed, PolicyOff
from rl4sys.client.forks import ForkedAgent
from rl4sys.client.health import Health
from rl4sys.client.observation_reader import BadObservation
from rl4sys.client.original_action import RL4SysAction
from rl4sys.client.original_agent import RL4SysAgent
from rl4sys.client.original_trajectory import RL4SysTrajectory
from rl4sys.client.section import SettingsError
from rl4sys.client.settings import load_settings
from rl4sys.experience import Ending

__all__ = [
    "Agent",
    "BadObservation",
    "ClientSettings",
    "ConnectError",
    "Ending",
    "Episode",
    "EpisodeEnded",
    "FallbackFailed",
    "ForkedAgent",
    "Health",
    "PolicyOff",
    "RL4SysAction",
    "RL4SysAgent",
    "RL4SysTrajectory",
    "SettingsError",
    "Tls",
    "connect",
    "connect_async",
    "load_settings",
    "publish_in_process",
    "run_environment",
    "withdraw_in_process",
]

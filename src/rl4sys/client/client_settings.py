"""The settings of a client: its identity, the server, the algorithm, the spaces, and limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rl4sys.client.acting_mode import ActingMode
from rl4sys.client.bad_input import BadInputChoice
from rl4sys.client.decision_place import DecisionPlace
from rl4sys.client.reward_window import DEFAULT_REWARD_WINDOW, RewardWindow
from rl4sys.experience import ArraySpec
from rl4sys.policy import ActionSpec, ActionStructure, RuntimeChoice
from rl4sys.records import Overflow

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
    """Seconds that `connect` waits for the server; given a cached policy or a fallback, only while it may answer."""
    call_timeout: float | None = None
    """Seconds that each call may take; absent: as many as `timeout`."""
    close_timeout: float = 10.0
    """Seconds that `close` sends what is not sent yet; it gives up at once when the server cannot be reached."""
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
    runtime: RuntimeChoice = RuntimeChoice.AUTO
    """What runs the policy: `auto` (the native runtime if it is installed), `numpy` or `native`."""
    seed: int | None = None
    """Seed of the exploration noise and of the learner. Absent: another noise at every start."""

    @property
    def call_seconds(self) -> float:
        """Seconds that each call may take."""
        return self.timeout if self.call_timeout is None else self.call_timeout

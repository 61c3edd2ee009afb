"""What all episodes of one agent share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rl4sys.client.agent_status import AgentStatus
from rl4sys.client.bad_input import BadInputChoice
from rl4sys.client.decision_times import DecisionTimes
from rl4sys.client.fallback import FallbackDecider
from rl4sys.client.governor import Governor
from rl4sys.client.lane import Lane
from rl4sys.client.native_acting import NativeActing
from rl4sys.client.reward_window import RewardWindow
from rl4sys.client.segment_buffer import SegmentBufferPool
from rl4sys.client.server_policy import ServerPolicy
from rl4sys.client.snapshot import Snapshot, ThreadPolicies
from rl4sys.client.thinning import Thinning
from rl4sys.experience import Segment


@dataclass(frozen=True, slots=True)
class SharedState:
    """What all episodes of one agent share."""

    governor: Governor
    policies: ThreadPolicies
    server_policy: ServerPolicy
    """Decides with `decide: server`."""
    status: AgentStatus
    pool: SegmentBufferPool
    thinning: Thinning
    times: DecisionTimes
    post: Callable[[Segment, Snapshot], None]
    release: Callable[[Lane], None]
    longest: int
    """Most steps of one segment."""
    reward_window: RewardWindow
    clock: Callable[[], float]
    """In seconds, for rewards that are accepted by time."""
    fallback: FallbackDecider | None
    on_bad_input: BadInputChoice
    forks: int
    native: NativeActing | None
    """Decides in the common case; None with the numpy runtime."""

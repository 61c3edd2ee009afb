"""What clients record: calls on an episode, and the segments that come of them, written by hand (see README.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def recordings() -> list[Record]:
    """Decisions of the system itself, times, and rewards that settle decisions."""
    return [_incumbent(), _times(), _settled(), _timeout()]


def write(path: Path) -> None:
    """Write the file."""
    path.write_text(json.dumps({"recordings": recordings()}, indent=1) + "\n")


def _took(seen: float, choice: int, **more: Any) -> Record:
    return {"do": "took", "seen": seen, "choice": choice, **more}


def _act(seen: float, **more: Any) -> Record:
    return {"do": "act", "seen": seen, **more}


def _reward(value: float, decision: int, *, final: bool = False) -> Record:
    return {"do": "reward", "value": value, "decision": decision, "final": final}


def _sealed(count: int) -> Record:
    """So many segments have arrived by now."""
    return {"do": "sealed", "count": count}


def _segment(start: int, seen: list[float], decided_by: str, ending: str, **more: Any) -> Record:
    """`seen` has one number more than there are steps; `action` is null where the policy drew it."""
    empty = {"action": None, "reward": [0.0] * (len(seen) - 1), "elapsed": None}
    return {"start": start, "seen": seen, "decided_by": decided_by, "ending": ending, **empty, **more}


def _incumbent() -> Record:
    """The system decides, then the policy, then the system again; a choice outside the space changes nothing."""
    events = [
        _took(0, 2),
        _took(1, 1),
        _took(1, 3, problem="whole number"),
        _act(2),
        _took(3, 0),
        _reward(5.0, 1),
        {"do": "end", "seen": 4, "ending": "terminated"},
    ]
    segments = [
        _segment(0, [0, 1, 2], "incumbent", "continues", action=[2, 1], reward=[0.0, 5.0]),
        _segment(2, [2, 3], "policy", "continues"),
        _segment(3, [3, 4], "incumbent", "terminated", action=[0]),
    ]
    return {"name": "incumbent", "settings": {"reward_window": 16}, "events": events, "segments": segments}


def _times() -> Record:
    """Times from each decision to the next, across the cut of a segment; time that goes back is refused."""
    events = [
        _act(0, now=10.0),
        _act(1, now=10.5),
        _act(2, now=10.25, problem="time does not go backwards"),
        _act(2, problem="Pass now with every decision"),
        _act(2, now=12.5),
        _took(3, 1, now=12.5),
        {"do": "end", "seen": 4, "ending": "truncated", "now": 16.5},
    ]
    segments = [
        _segment(0, [0, 1, 2], "policy", "continues", elapsed=[0.5, 2.0]),
        _segment(2, [2, 3], "policy", "continues", elapsed=[0.0]),
        _segment(3, [3, 4], "incumbent", "truncated", action=[1], elapsed=[4.0]),
    ]
    settings = {"max_segment_length": 2, "reward_window": 16}
    return {"name": "times", "settings": settings, "events": events, "segments": segments}


def _settled() -> Record:
    """A segment whose decisions get no more rewards is sent at once, and not before the segments in front of it."""
    events = [
        *(_took(step, 0) for step in range(5)),
        _reward(1.0, 2, final=True),
        _reward(2.0, 3, final=True),
        _sealed(0),
        _reward(3.0, 0, final=True),
        _reward(4.0, 1, final=True),
        _sealed(2),
        {"do": "end", "seen": 5, "ending": "terminated"},
    ]
    segments = [
        _segment(0, [0, 1, 2], "incumbent", "continues", action=[0, 0], reward=[3.0, 4.0]),
        _segment(2, [2, 3, 4], "incumbent", "continues", action=[0, 0], reward=[1.0, 2.0]),
        _segment(4, [4, 5], "incumbent", "terminated", action=[0]),
    ]
    settings = {"max_segment_length": 2, "reward_window": 16}
    return {"name": "settled", "settings": settings, "events": events, "segments": segments}


def _timeout() -> Record:
    """With a timeout a segment is cut when it is older, and sent when its rewards are overdue."""
    events = [
        _took(0, 0),
        _took(1, 1),
        {"do": "clock", "seconds": 5.0},
        _took(2, 2),
        _sealed(0),
        {"do": "clock", "seconds": 5.0},
        _took(3, 0),
        _sealed(1),
        _reward(9.0, 0),
        {"do": "end", "seen": 4, "ending": "terminated"},
    ]
    segments = [
        _segment(0, [0, 1, 2], "incumbent", "continues", action=[0, 1]),
        _segment(2, [2, 3], "incumbent", "continues", action=[2]),
        _segment(3, [3, 4], "incumbent", "terminated", action=[0]),
    ]
    return {"name": "timeout", "settings": {"reward_timeout": "5s"}, "events": events, "segments": segments}

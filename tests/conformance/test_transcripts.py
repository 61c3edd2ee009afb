from __future__ import annotations

import json

from rl4sys.records import Overflow

from .golden import VECTORS


def test_the_transcripts_show_every_kind_of_event_answer_and_drop() -> None:
    transcripts = json.loads((VECTORS / "transcripts.json").read_text())["transcripts"]
    events = [event for transcript in transcripts for event in transcript["events"]]
    assert {event["do"] for event in events} == {"offer", "flush", "wait", "request", "answered", "failed", "restart"}
    assert {t["limits"]["overflow"] for t in transcripts} == set(Overflow)
    assert {e["answer"]["verdict"] for e in events if e["do"] == "offer"} == {"accepted", "dropped", "full"}
    drops = {reason for event in events for reason in event["after"]["drops"]}
    assert drops >= {"overflow_oldest", "overflow_newest", "too_large", "not_finite", "invalid_argument"}
    assert sum(len(event.get("chances", ())) for event in events) > 100

"""Transcripts of the client's delivery core: events and expected answers (see README.md)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from rl4sys.client.delivery import HASH_BYTES, Delivery, DeliverySession, Pace
from rl4sys.experience import ArraySpec, Ending, Segment, SegmentSchema, StreamKey
from rl4sys.records import OfferOutcome, Outbox, OutboxLimits, Overflow, Parcel
from rl4sys.wire import Failure, SegmentFormat, encode_pack
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import training_pb2

TRANSCRIPTS = 36
PACKED = 12
"""Transcripts of a client with short segments, after the others."""
EVENTS = 80
TOLERANCE = 1e-9
"""Tolerance in seconds; everything else must be equal."""

Event = dict[str, Any]


class Chances(random.Random):
    """Recorded random numbers: multiples of 1/256, which every language reads equally."""

    def __init__(self, draw: Callable[[], float]) -> None:
        super().__init__(0)
        self._draw = draw
        self.drawn: list[float] = []

    def random(self) -> float:
        """One number of [0, 1)."""
        self.drawn.append(self._draw())
        return self.drawn[-1]


class Replay:
    """An outbox and a delivery that replay a transcript."""

    def __init__(self, setup: Mapping[str, Any], draw: Callable[[], float]) -> None:
        limits = setup["limits"]
        self._limits = OutboxLimits(limits["capacity_bytes"], Overflow(limits["overflow"]), limits["window"])
        self._pace = Pace(**setup["pace"])
        self._session = DeliverySession("session", "learner", **setup["session"])
        self.chances = Chances(draw)
        self._start(setup["epoch"], [])

    def _start(self, epoch: int, backlog: list[Parcel]) -> None:
        self.outbox = Outbox(epoch, self._limits, backlog)
        self.delivery = Delivery(self.outbox, self._pace, self.chances)

    def apply(self, event: Event) -> tuple[Any, dict[str, Any]]:
        """Replay one event; returns the answer and the counts afterwards."""
        answer = getattr(self, "_" + event["do"])(event)
        box = self.outbox
        after = {"backlog": box.backlog, "backlog_bytes": box.backlog_bytes, "in_flight": box.in_flight}
        after |= {"backlog_segments": box.backlog_segments}
        return answer, after | {"acknowledged": self.delivery.acknowledged, "drops": dict(sorted(box.drops.items()))}

    def _offer(self, event: Event) -> Any:
        payload = bytes([event["schema"]]) * HASH_BYTES + bytes.fromhex(event["body"])
        offer = self.outbox.offer(payload, event.get("segments", 1))
        if offer.outcome is not OfferOutcome.FULL:
            self.delivery.offered(event["now"], ended=event.get("segments", 1) if event["episode_ended"] else 0)
        return {
            "verdict": offer.outcome.name.lower(),
            "sequence": None if offer.parcel is None else offer.parcel.sequence,
            "evicted": [list(parcel.key) for parcel in offer.evicted],
        }

    def _wait(self, event: Event) -> Any:
        return self.delivery.wait(event["now"])

    def _flush(self, event: Event) -> Any:
        if event["on"]:
            self.delivery.flush()
        else:
            self.delivery.end_flush()

    def _request(self, event: Event) -> Any:
        request = self.delivery.request(self._session)
        if request is None:
            return None
        return {
            "epoch": request.epoch,
            "schema": request.schema_hash[0],
            "segments": [
                [pushed.sequence, crc32(pushed.segment), *([pushed.count] if pushed.count else [])]
                for pushed in request.segments
            ],
        }

    def _answered(self, event: Event) -> Any:
        reply = training_pb2.PushReply(retry_after_ms=event["retry_after_ms"])
        for first, last in event["acknowledged"]:
            reply.acknowledged.add(first=first, last=last)
        for sequence, reason, *count in event["refused"]:
            reply.refused.add(sequence=sequence, reason=reason, message="never", count=count[0] if count else 0)
        self.delivery.answered(reply, event["now"])

    def _failed(self, event: Event) -> Any:
        failure = Failure(retry_after_ms=event["retry_after_ms"])
        self.delivery.failed(CallFailed(Code[event["code"]], "it failed", failure), event["now"])

    def _restart(self, event: Event) -> Any:
        backlog = self.outbox.unsettled()
        self._start(event["epoch"], backlog)
        return [list(parcel.key) for parcel in backlog]


def transcripts() -> list[dict[str, Any]]:
    """All transcripts, the same at every run."""
    return [_transcript(seed) for seed in range(TRANSCRIPTS + PACKED)]


def write(path: Path) -> None:
    """One event per line."""
    parts = []
    for transcript in transcripts():
        head = json.dumps({name: value for name, value in transcript.items() if name != "events"})[:-1]
        events = ",\n  ".join(json.dumps(event) for event in transcript["events"])
        parts.append(f'{head}, "events": [\n  {events}]}}')
    path.write_text('{"transcripts": [\n' + ",\n".join(parts) + "\n]}\n")


def differences(path: Path) -> Iterator[str]:
    """Differences of the written transcripts from this version, and missing ones."""
    written = json.loads(path.read_text())["transcripts"]
    for transcript in written:
        for problem in replay(transcript):
            yield f"{transcript['name']}, {problem}"
    if [transcript["name"] for transcript in written] != [transcript["name"] for transcript in transcripts()]:
        yield "there are other transcripts"


def replay(transcript: Mapping[str, Any]) -> Iterator[str]:
    """Every event of a transcript that this version answers differently."""
    pending: list[float] = []
    machine = Replay(transcript, lambda: pending.pop(0))
    for number, event in enumerate(transcript["events"]):
        pending.extend(event.get("chances", ()))
        answer, after = machine.apply(event)
        if not _agrees(answer, event["answer"]) or after != event["after"] or pending:
            yield f"event {number} ({event['do']}): {answer}, {after}; expected {event['answer']}, {event['after']}"
            return


def _agrees(found: Any, expected: Any) -> bool:
    if isinstance(found, float) and isinstance(expected, float):
        return abs(found - expected) <= TOLERANCE
    return bool(found == expected)


def _transcript(seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    is_packed = seed >= TRANSCRIPTS
    transcript: dict[str, Any] = {
        "name": f"seed {seed}",
        "limits": {
            "capacity_bytes": rng.choice([700, 2000, 100_000]),
            "overflow": list(Overflow)[seed % 3].value,
            "window": rng.choice([1, 3, 64]),
        },
        "pace": {
            "interval": rng.choice([0.0, 0.5]),
            "episodes": rng.choice([None, 2]),
            "eager_bytes": rng.choice([400, 50_000]),
        },
        "session": {
            "max_message_bytes": rng.choice([4096 + 250, 1 << 16]),
            "max_push_segments": rng.choice([1, 2, 64]),
        },
        "epoch": 1,
        "events": [],
    }
    if is_packed:
        transcript["session"]["max_pack_segments"] = rng.choice([0, 3, 100])
    machine = Replay(transcript, lambda: rng.randrange(256) / 256)
    for event in _story(rng, machine, is_packed=is_packed):
        machine.chances.drawn.clear()
        event["answer"], event["after"] = machine.apply(event)
        if machine.chances.drawn:
            event["chances"] = list(machine.chances.drawn)
        transcript["events"].append(event)
    return transcript


def _story(rng: random.Random, machine: Replay, *, is_packed: bool) -> Iterator[Event]:
    """Random events of a client that depend on its state so far. Times are multiples of 1/64 s."""
    now, epoch = 0.0, 1
    for _ in range(EVENTS):
        # Sometimes the machine was suspended.
        now += rng.randrange(32) / 64 if rng.random() < 0.97 else 4096.0
        kind = rng.random()
        if kind < 0.4:
            body = rng.randbytes(rng.choice([1, 2, 4, 9, 17, 60, 200])).hex()
            event = {"do": "offer", "now": now, "schema": rng.randrange(2), "body": body}
            if is_packed and (count := rng.choice([1, 2, 3, 8])) > 1:
                # Sometimes not a pack at all, as after a damage that no checksum found.
                event |= {"segments": count, "body": body if rng.random() < 0.1 else _pack(rng, count).hex()}
            yield event | {"episode_ended": rng.random() < 0.5}
        elif kind < 0.45:
            yield {"do": "flush", "on": rng.random() < 0.5}
        elif kind < 0.48:
            epoch += 1
            yield {"do": "restart", "epoch": epoch}
        else:
            yield {"do": "wait", "now": now}
            if machine.delivery.wait(now) == 0.0:
                asked: Event = {"do": "request"}
                yield asked
                if asked["answer"] is not None:
                    segments = asked["answer"]["segments"]
                    counts = [(sequence, *(count or [1])) for sequence, _, *count in segments]
                    sequences = [sequence + at for sequence, count in counts for at in range(count)]
                    yield _outcome(rng, now, sequences)


def _pack(rng: random.Random, count: int) -> bytes:
    """Segments of one or two steps, of which one number is observed and one of three choices taken."""
    schema = SegmentSchema((ArraySpec("seen", "float32", (1,)),), ArraySpec("action", "int64", ()))
    steps = [rng.choice([1, 1, 2]) for _ in range(count)]
    return encode_pack(
        SegmentFormat(schema, (3,)),
        [
            Segment(
                StreamKey("client", "agent", rng.randrange(2)),
                episode=rng.randrange(1 << 40),
                start=0,
                policy_version=7,
                ending=Ending.TERMINATED,
                observation={"seen": np.arange(each + 1, dtype=np.float32)[:, None]},
                action=np.array([rng.randrange(3) for _ in range(each)]),
                reward=np.full(each, rng.randrange(8) / 4, np.float32),
                extras={},
                carry={},
            )
            for each in steps
        ],
    )


def _outcome(rng: random.Random, now: float, sequences: list[int]) -> Event:
    """A reply to a request: complete, partial, unrelated, or none."""
    kind = rng.random()
    if kind < 0.3:
        code = rng.choice(["UNAVAILABLE", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "INVALID_ARGUMENT"])
        return {"do": "failed", "now": now, "code": code, "retry_after_ms": rng.choice([0, 0, 250])}
    refused = [sequence for sequence in sequences if rng.random() < 0.1]
    covered = [sequence for sequence in sequences if sequence not in refused and (kind < 0.8 or rng.random() < 0.5)]
    acknowledged = [[sequence, sequence] for sequence in covered]
    if kind > 0.9:
        acknowledged += [[1 << 40, 1 << 50]]
        refused += [1 << 40]
    return {
        "do": "answered",
        "now": now,
        "acknowledged": acknowledged,
        "refused": [[sequence, "REFUSAL_REASON_NOT_FINITE"] for sequence in refused],
        "retry_after_ms": rng.choice([0, 0, 0, 250]),
    }

"""Two starts of a server and of a client with a disk outbox, in one process, so that a kill ends both at any failpoint.

What the client knows is in the file `told`, one line each, written before the next step.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.faults.reference_fold import ArchivingFiles, digest_of_newest, folded_without_faults, stored, stored_records
from tests.records.failpoint_files import FailpointFiles
from tests.server.clients import DQN, PPO, eventually, join_request, synthetic_segment

from rl4sys.client.delivery import Delivery, DeliverySession, Pace
from rl4sys.failpoints import failpoint
from rl4sys.records import DiskOutbox, fresh_epoch
from rl4sys.server import InProcessTransport, ServiceOptions, TrainingService
from rl4sys.server.learners.hosted_learner import HostedLearner
from rl4sys.server.learners.learner_commands import CommandKind, LearnerCommand
from rl4sys.server.learners.learner_setup import LearnerSetup
from rl4sys.server.workers.learner_config import build_learner, resolve
from rl4sys.wire import SegmentFormat, decode_policy, decode_segment, encode_segment
from rl4sys.wire.calls import CallFailed

OFTEN = {"checkpoint_frequency": 32}
METHODS: dict[str, tuple[str, dict[str, Any]]] = {"PPO": (PPO[0], PPO[1] | OFTEN), "DQN": (DQN[0], DQN[1] | OFTEN)}
FILE_BYTES = 800
SEGMENTS = 24
TIMEOUT = 60.0


class Told:
    """Events that must survive a kill, one line each."""

    def __init__(self, place: Path) -> None:
        self._path = place / "told"
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(self, fact: str, number: int) -> None:
        os.write(self._file, f"{fact} {number}\n".encode())

    def all(self, fact: str) -> set[int]:
        lines = (line.split() for line in self._path.read_text().splitlines())
        return {int(number) for said, number in lines if said == fact}


def live(place: Path, method: str) -> None:
    """Serve and deliver, leave a torn tail, serve and deliver again."""
    told = Told(place)
    _serve_and_deliver(place, method, told, range(SEGMENTS))
    _tear(place)
    _serve_and_deliver(place, method, told, range(SEGMENTS, 2 * SEGMENTS))


def recover(place: Path, method: str) -> None:
    """Start again after a kill, deliver the rest, and check the invariants against the log."""
    told = Told(place)
    begun = told.all("begun")
    _serve_and_deliver(place, method, told, range(max(begun, default=-1) + 1, 2 * SEGMENTS))
    learner, archive = place / "data" / "learners" / "a", place / "archive"
    found = [number for number, _ in numbered(place)]
    assert len(found) == len(set(found)), f"trained twice: {sorted(n for n in found if found.count(n) > 1)}"
    assert told.all("acknowledged") <= set(found), f"acknowledged and lost: {told.all('acknowledged') - set(found)}"
    assert told.all("accepted") <= set(found), f"accepted and dropped: {told.all('accepted') - set(found)}"
    learned = digest_of_newest(learner)
    count = len(list(stored_records(learner / "log", archive)))
    assert learned.position == count, f"folded {learned.position} of {count} records"
    assert learned == folded_without_faults(learner, archive, place / "fresh"), "the weights are others"


def numbered(place: Path) -> Iterator[tuple[int, tuple[int, int]]]:
    """Every stored segment: the number that it was created with, and its identity."""
    learner = place / "data" / "learners" / "a"
    setup = LearnerSetup.read(learner)
    policy = build_learner(resolve(setup.algorithm, setup.parameters), setup).algorithm.policies.explore
    form = SegmentFormat.of(policy)
    for entry in stored(learner / "log", place / "archive"):
        segment = decode_segment(form, entry.segment, client=entry.client, sequence=entry.sequence, max_steps=1000)
        yield segment.episode, (entry.epoch, entry.sequence)


def _serve_and_deliver(place: Path, method: str, told: Told, numbers: range) -> None:
    files = FailpointFiles(ArchivingFiles(place / "archive"), failpoint)
    options = ServiceOptions(workers="threads", restart_seconds=0.01, files=files)
    with TrainingService(place / "data", options) as service:
        _deliver(InProcessTransport(service), service, place, method, told, numbers)


def _deliver(
    transport: InProcessTransport, service: TrainingService, place: Path, method: str, told: Told, numbers: range
) -> None:
    joined = transport.join(join_request("a", METHODS[method]), 10.0)
    learner = service._learners.find("a")
    assert learner is not None
    learner.inbox._records._file_bytes = FILE_BYTES
    spec, form = decode_policy(joined.explore), SegmentFormat.from_message(joined.schema)
    outbox = DiskOutbox(place / "outbox", fresh_epoch())
    delivery = Delivery(outbox, Pace(0.0, None, 1), random.Random(0))
    session = DeliverySession(joined.session, joined.learner, joined.limits.max_message_bytes, 3)
    names: dict[tuple[int, int], int] = {}
    for number in numbers:
        told.say("begun", number)
        segment = synthetic_segment(spec, "a", number, version=learner.version)
        offer = outbox.offer(joined.schema_hash + encode_segment(form, segment))
        assert offer.parcel is not None
        names[offer.parcel.key] = number
        told.say("accepted", number)
        delivery.offered(0.0, ended=True)
        if number == SEGMENTS // 2:
            _change_learning_rate(learner)
        if number % 4 == 3:
            _send_all(delivery, session, transport, told, names)
    _send_all(delivery, session, transport, told, names)
    outbox.close()
    eventually(lambda: learner.inbox.unfolded == 0, TIMEOUT)


def _change_learning_rate(learner: HostedLearner) -> None:
    learner.inbox.append_command(LearnerCommand(CommandKind.SET, {"algorithm.lr": 1e-4})).result(TIMEOUT)


def _send_all(
    delivery: Delivery,
    session: DeliverySession,
    transport: InProcessTransport,
    told: Told,
    names: dict[tuple[int, int], int],
) -> None:
    deadline = time.monotonic() + TIMEOUT
    while delivery.outbox.backlog:
        assert time.monotonic() < deadline, "the outbox is not empty in time"
        request = delivery.request(session)
        if request is None:
            return
        try:
            reply = transport.push(request, TIMEOUT)
        except CallFailed as error:
            delivery.failed(error, time.monotonic())
            continue
        for part in reply.acknowledged:
            for sequence in range(part.first, part.last + 1):
                if (int(request.epoch), sequence) in names:
                    told.say("acknowledged", names[int(request.epoch), sequence])
        delivery.answered(reply, time.monotonic())


def _tear(place: Path) -> None:
    """Leave the files as a kill in the middle of the next append would."""
    newest = max((place / "data" / "learners" / "a" / "log").glob("*.records"))
    with newest.open("ab") as file:
        file.write(b"half of a record")

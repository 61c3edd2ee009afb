"""Messages that claim or unfold into more than they are, each with the memory that it may take.

Each is made first, by the attacker, and only then set off. `python -m tests.hostile.bombs` does so for all, each in a
process of its own, and prints by how many bytes that one grew and how the bomb was refused.
"""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import zstandard
from google.protobuf.message import DecodeError
from tests.client.fake_server import small_policy
from tests.hostile.mutations import field, varint

from rl4sys.client.grpc_transport import _read
from rl4sys.experience import Ending, Segment, StreamKey
from rl4sys.policy import Head, Op, PolicySpec, Program, Tensor
from rl4sys.records import Durability
from rl4sys.server import ServiceOptions, TrainingService
from rl4sys.weights import Encoding, PatchMismatch, apply_patch
from rl4sys.wire import (
    ContractViolation,
    Question,
    SegmentFormat,
    SegmentRefused,
    decode_patch,
    decode_policy,
    decode_question,
    decode_segment,
    encode_policy,
    encode_question,
    encode_segment,
    parse,
    require_decides,
)
from rl4sys.wire.calls import CallFailed
from rl4sys.wire.generated import experience_pb2, policy_pb2, training_pb2, weights_pb2
from rl4sys.wire.message_sizes import JOIN_REPLY_BYTES

MESSAGE = 4 << 20
WEIGHTS = 1 << 20
"""Floats of the policy that patches are for: 4 MiB."""
_ZSTD_BLOCK = 128 << 10
"""Bytes that a block of a frame can unfold to, at most."""
SPEC = small_policy()
FORM = SegmentFormat.of(SPEC)
SetOff: TypeAlias = Callable[[], object]
REFUSED = (CallFailed, ContractViolation, SegmentRefused, PatchMismatch, DecodeError)


def _segment(steps: int = 4) -> experience_pb2.Segment:
    whole = Segment(
        StreamKey("a"),
        0,
        0,
        0,
        Ending.TERMINATED,
        {"observation": np.zeros((steps + 1, 8), np.float32)},
        np.zeros(steps, np.int64),
        np.zeros(steps, np.float32),
        {"log_prob": np.zeros(steps, np.float32)},
        {},
    )
    return experience_pb2.Segment.FromString(encode_segment(FORM, whole))


def _read_segment(message: experience_pb2.Segment | bytes) -> SetOff:
    data = message if isinstance(message, bytes) else message.SerializeToString()
    return lambda: decode_segment(FORM, data, client="a", sequence=0, max_steps=65_536)


def _changed_segment(**changes: Any) -> SetOff:
    message = _segment()
    for name, value in changes.items():
        setattr(message, name, value)
    return _read_segment(message)


def _giant_columns() -> SetOff:
    message = _segment()
    message.columns[0] = bytes(MESSAGE - 200)
    return _read_segment(message)


def _empty_columns() -> SetOff:
    return _read_segment(field(8, 2, b"") * (MESSAGE // 2))


def _unknown_fields() -> SetOff:
    return _read_segment(field(9_999, 0, b"\1") * (MESSAGE // 4))


def _push(data: bytes) -> SetOff:
    return lambda: parse(training_pb2.PushRequest, data, most_bytes=MESSAGE, most_fields=2 * 1024 + 16)


def _act(**changes: Any) -> SetOff:
    seen = {"observation": np.zeros((1, 8), np.float32)}
    message = encode_question(FORM, Question("agent", 0, 0, seen, None, 1), "session")
    for name, value in changes.items():
        if name == "observation":
            del message.observation[:]
            message.observation.extend(value)
        else:
            setattr(message, name, value)
    data = message.SerializeToString()
    return lambda: decode_question(FORM, parse(training_pb2.ActRequest, data, most_bytes=MESSAGE), max_rows=4_096)


def _patch(encoding: Encoding, payload: bytes, size: int = WEIGHTS, **changes: Any) -> SetOff:
    header: dict[str, Any] = {
        "target": 1,
        "base": 0 if encoding is Encoding.XOR else None,
        "encoding": int(encoding),
        "size": size,
        "sha256": bytes(32),
        "payload_bytes": len(payload),
    }
    chunk = weights_pb2.PatchChunk(header=weights_pb2.PatchHeader(**(header | changes)), payload=payload)
    present = np.zeros(WEIGHTS, np.float32)
    return lambda: apply_patch(present, decode_patch([chunk], WEIGHTS), WEIGHTS)


def _zstd(size: int, stated: bool = True) -> bytes:
    """A frame of zeros (RFC 8878, section 3.1.1) as run-length blocks, which unfold to 32,768 times their length."""
    descriptor, window = (0b11 << 6 if stated else 0), (21 - 10) << 3
    header = struct.pack("<IBB", 0xFD2FB528, descriptor, window) + (struct.pack("<Q", size) if stated else b"")
    block = _ZSTD_BLOCK << 3 | 1 << 1
    blocks = struct.pack("<I", block) * (size // _ZSTD_BLOCK)
    last = struct.pack("<I", block | 1)
    return header + blocks[: -len(last)] + last


def _lying_frame() -> bytes:
    """Says that it holds as much as it should, and holds a thousand times that."""
    honest = zstandard.ZstdCompressor(write_content_size=True).compress(bytes(4 * WEIGHTS))
    parameters = zstandard.get_frame_parameters(honest)
    assert parameters.content_size == 4 * WEIGHTS
    giant = bytearray(_zstd(4 << 30))
    stated = struct.pack("<Q", 4 << 30)
    at = giant.find(stated)
    giant[at : at + 8] = struct.pack("<Q", 4 * WEIGHTS)
    return bytes(giant)


def _endless_parts() -> SetOff:
    first = weights_pb2.PatchChunk(
        header=weights_pb2.PatchHeader(target=1, encoding=1, size=WEIGHTS, sha256=bytes(32), payload_bytes=4 * WEIGHTS)
    )
    first.payload = bytes(1 << 20)

    def parts() -> Any:
        yield first
        while True:
            yield weights_pb2.PatchChunk(payload=bytes(1 << 20))

    return lambda: decode_patch(parts(), WEIGHTS)


def _policy(message: policy_pb2.PolicySpec) -> SetOff:
    data = message.SerializeToString()
    return lambda: require_decides(decode_policy(policy_pb2.PolicySpec.FromString(data)))


def _with_program(ops: tuple[Op, ...], tensors: tuple[Tensor, ...] = (), last: str = "observation") -> SetOff:
    program = Program(SPEC.program.inputs, ops, tensors)
    return _policy(encode_policy(PolicySpec(SPEC.action, program, Head("categorical", (last,)))))


def _doubling() -> SetOff:
    ops, last = [], "observation"
    for number in range(60):
        ops.append(Op("concat", (f"r{number}",), (last, last)))
        last = f"r{number}"
    return _with_program(tuple(ops), last=last)


def _giant_layer() -> SetOff:
    tensors = (Tensor("w", (8, 1 << 28)), Tensor("b", (1 << 28,)))
    return _with_program((Op("linear", ("r",), ("observation",), ("w", "b")),), tensors, "r")


def _wide_layer() -> SetOff:
    """Within what all tensors may have together, and its result beyond what a decision may take."""
    tensors = (Tensor("w", (0, 1 << 30)), Tensor("b", (0,)))
    return _with_program((Op("linear", ("r",), ("observation",), ("w", "b")),), tensors, "r")


def _many_ops() -> SetOff:
    message = encode_policy(SPEC)
    message.program.ops.extend([policy_pb2.Op(kind="tanh")] * 200_000)
    return _policy(message)


def _join(parameters: str) -> SetOff:
    request = training_pb2.JoinRequest(
        protocol=1, client="a", algorithm=training_pb2.Algorithm(name="PPO", parameters_json=parameters)
    ).SerializeToString()
    service = TrainingService(None, ServiceOptions("threads", Durability.MEMORY))
    return lambda: service.join(parse(training_pb2.JoinRequest, request))


def _answer(data: bytes) -> SetOff:
    """What a server answers to Join, as it is read by a client."""
    return lambda: _read(training_pb2.JoinReply, JOIN_REPLY_BYTES, data)


def _deep_message() -> SetOff:
    """Groups within groups would take the stack of a careless reader."""
    return lambda: parse(training_pb2.JoinRequest, b"\x0b" * 100_000)


BOMBS: dict[str, tuple[Callable[[], SetOff], int]] = {
    "segment: lying number of steps": (lambda: _changed_segment(steps=65_536), MESSAGE),
    "segment: four billion steps": (lambda: _changed_segment(steps=2**32 - 1), MESSAGE),
    "segment: a giant column": (_giant_columns, MESSAGE),
    "segment: two million empty columns": (_empty_columns, MESSAGE),
    "segment: a million unknown fields": (_unknown_fields, MESSAGE),
    "segment: a column longer than the message": (lambda: _read_segment(b"\x42" + varint(2**31)), MESSAGE),
    "segment: a giant name": (lambda: _changed_segment(agent="a" * (MESSAGE - 500)), MESSAGE),
    "segment: a length beyond 64 bits": (lambda: _read_segment(b"\x42" + b"\xff" * 10 + b"\1"), MESSAGE),
    "push: two million empty segments": (lambda: _push(field(4, 2, b"") * (MESSAGE // 2)), MESSAGE),
    "push: more bytes than a message": (lambda: _push(field(1, 2, b"a" * MESSAGE)), MESSAGE),
    "push: a session longer than the message": (lambda: _push(b"\x0a" + varint(2**32 - 1) + b"a"), MESSAGE),
    "act: four billion rows": (lambda: _act(rows=2**32 - 1), MESSAGE),
    "act: rows that are not there": (lambda: _act(rows=4_096), MESSAGE),
    "act: giant arrays": (lambda: _act(observation=[bytes(MESSAGE - 500)]), MESSAGE),
    "act: many empty arrays": (lambda: _act(observation=[b""] * 1_000_000), MESSAGE),
    "join: deep JSON": (lambda: _join('{"a":' * 13_000), MESSAGE),
    "join: more parameters than are taken": (lambda: _join("[" + "1," * 100_000 + "1]"), MESSAGE),
    "join: more bytes than are taken": (lambda: _join("[" + "1," * 2_000_000 + "1]"), MESSAGE),
    "join: groups within groups": (_deep_message, MESSAGE),
    "patch: zeros that unfold to 4 GiB": (lambda: _patch(Encoding.PLANES, _zstd(4 << 30)), 4 * WEIGHTS),
    "patch: the same as a difference": (lambda: _patch(Encoding.XOR, _zstd(4 << 30)), 4 * WEIGHTS),
    "patch: a frame that does not state its size": (
        lambda: _patch(Encoding.PLANES, _zstd(4 << 30, stated=False)),
        4 * WEIGHTS,
    ),
    "patch: a frame that lies about its size": (lambda: _patch(Encoding.PLANES, _lying_frame()), 4 * WEIGHTS),
    "patch: a size that is not the policy's": (
        lambda: _patch(Encoding.PLANES, _zstd(1 << 20), size=1 << 40),
        4 * WEIGHTS,
    ),
    "patch: a giant payload announced": (lambda: _patch(Encoding.RAW, b"", payload_bytes=2**63), 4 * WEIGHTS),
    "patch: parts without end": (_endless_parts, 4 * WEIGHTS),
    "answer: two million empty ops": (
        lambda: _answer(field(6, 2, field(2, 2, field(2, 2, b"") * (MESSAGE // 2)))),
        MESSAGE,
    ),
    "answer: two million empty fields": (lambda: _answer(field(4, 2, b"") * (200 << 10)), MESSAGE),
    "policy: registers that double": (_doubling, 256 << 20),
    "policy: a giant layer": (_giant_layer, MESSAGE),
    "policy: a layer of nothing, and a giant result": (_wide_layer, 256 << 20),
    "policy: more ops than can travel": (_many_ops, MESSAGE),
}


def grown_by(set_off: SetOff) -> tuple[str, int]:
    """How it was refused, and by how many bytes the process grew meanwhile, at its largest."""
    # Linux then resets the peak.
    Path("/proc/self/clear_refs").write_text("5")
    before = _peak()
    try:
        set_off()
    except REFUSED as error:
        said = f"{type(error).__name__}: {error}"
    except Exception as error:
        said = f"FAULT {type(error).__name__}: {error}"
    else:
        said = "FAULT taken"
    return said, _peak() - before


def _peak() -> int:
    (kilobytes,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return 1024 * int(kilobytes)


def main() -> None:
    for name, (make, _) in BOMBS.items():
        child = os.fork()
        if child == 0:
            how, grown = grown_by(make())
            print(json.dumps([name, grown, how]), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()

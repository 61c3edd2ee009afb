import subprocess
import sys

import pytest

from rl4sys.wire import ContractViolation, parse
from rl4sys.wire.generated import experience_pb2, training_pb2

LYING = {
    "a field longer than the message": b"\x0a\x05ab",
    "a field of two gigabytes": b"\x0a\xff\xff\xff\xff\x07ab",
    "a length that never ends": b"\x0a" + b"\xff" * 20,
    "a tag that never ends": b"\xff" * 20,
    "a number that never ends": b"\x08" + b"\xff" * 20,
    "a number cut short": b"\x08\x80",
    "a tag alone": b"\x0a",
    "half a double": b"\x09\0\0\0",
    "a group": b"\x0b\x0c",
    "an unknown wire type": b"\x0f",
    "a field numbered 0": b"\x02\x00",
    "text that is not UTF-8": b"\x0a\x01\xff",
}


@pytest.mark.parametrize("data", LYING.values(), ids=list(LYING))
def test_malformed_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(ContractViolation, match="are not a Segment"):
        parse(experience_pb2.Segment, data)


def test_a_message_that_is_too_large_is_refused_without_parsing() -> None:
    with pytest.raises(ContractViolation, match="1001 bytes; at most 1000"):
        parse(experience_pb2.Segment, b"\xff" * 1001, most_bytes=1000)


def test_a_message_with_as_many_fields_as_allowed_is_parsed() -> None:
    data = training_pb2.PushRequest(segments=[training_pb2.PushedSegment()] * 10).SerializeToString()
    assert len(parse(training_pb2.PushRequest, data, most_fields=10).segments) == 10
    with pytest.raises(ContractViolation, match="more than 9 fields"):
        parse(training_pb2.PushRequest, data, most_fields=9)


@pytest.mark.parametrize("length", [0, 1, 127, 128, 16_383, 16_384, 2_097_152])
def test_fields_are_counted_as_protobuf_reads_them(length: int) -> None:
    data = training_pb2.PushedSegment(sequence=2**62, segment=bytes(length)).SerializeToString()
    assert len(parse(training_pb2.PushedSegment, data, most_bytes=1 << 22, most_fields=2).segment) == length


BOMB = """
import re
from pathlib import Path
from rl4sys.wire import ContractViolation, SegmentFormat, SegmentRefused, decode_segment, parse
from rl4sys.wire.generated import training_pb2
from rl4sys.experience import ArraySpec, SegmentSchema
form = SegmentFormat(SegmentSchema((), ArraySpec("action", "int64", ())))
def peak():
    # Not getrusage: its peak is that of the parent, if that was higher.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
push, segment = b"\\x22\\x00" * (1 << 21), b"\\x42\\x00" * (1 << 21)
before = peak()
try:
    parse(training_pb2.PushRequest, push, most_bytes=1 << 22)
except ContractViolation as error:
    print(type(error).__name__)
try:
    decode_segment(form, segment, client="bomber", sequence=0, max_steps=1000)
except SegmentRefused as error:
    print(type(error).__name__)
print(peak() - before)
"""


def test_four_megabytes_of_empty_fields_allocate_nothing() -> None:
    # Built naively, the first would take two hundred megabytes, the second sixty-four.
    result = subprocess.run([sys.executable, "-c", BOMB], capture_output=True, text=True, check=True)
    first, second, kilobytes = result.stdout.split()
    assert (first, second) == ("ContractViolation", "SegmentRefused")
    assert int(kilobytes) < 1024

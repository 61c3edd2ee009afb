"""Pushed segments as zstd frames: which are sent as frames, and which frames must be refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from rl4sys.weights import packing
from rl4sys.wire.compression import compress_push
from rl4sys.wire.generated import training_pb2


def _contents() -> dict[str, bytes]:
    """Segments at the limits of the rule, and one of a scheduler: 20 of 128 rows are real, the others are zeros."""
    rng = np.random.RandomState(20_015)
    queue = np.zeros((128, 8), np.float32)
    queue[:20] = rng.standard_normal((20, 8)).astype(np.float32).round(2)
    return {
        "empty": b"",
        "too_short": bytes(127),
        "just_long_enough": bytes(128),
        "random": rng.bytes(1_000),
        "scheduler": queue.tobytes(),
    }


def push_cases() -> dict[str, Any]:
    """What a client does with segments, and what a server does with frames."""
    segments = []
    for name, content in _contents().items():
        request = training_pb2.PushRequest(segments=[training_pb2.PushedSegment(segment=content)])
        compress_push(request)
        is_frame = request.segments[0].uncompressed_bytes > 0
        segments.append({"name": name, "segment": content.hex(), "is_frame": is_frame})
    return {"segments": segments, "frames": list(_frames(_contents()["scheduler"]))}


def _frames(content: bytes) -> Iterator[dict[str, Any]]:
    def case(name: str, frame: bytes, size: int, result: bytes | None = None) -> dict[str, Any]:
        read = None if result is None else result.hex()
        return {"name": name, "frame": frame.hex(), "uncompressed_bytes": size, "segment": read}

    frames = {f"level_{level}": zstandard.ZstdCompressor(level=level).compress(content) for level in (1, 3, 19)}
    frames["with_checksum"] = zstandard.ZstdCompressor(write_checksum=True).compress(content)
    for name, frame in frames.items():
        yield case(name, frame, len(content), content)
    random = np.random.RandomState(20_016).bytes(300)
    yield case("not_smaller", zstandard.ZstdCompressor().compress(random), len(random), random)
    good = frames["level_3"]
    yield case("cut", good[:-1], len(content))
    yield case("longer", good + b"\0", len(content))
    yield case("two_frames", good + good, 2 * len(content))
    yield case("larger_than_said", good, len(content) - 1)
    yield case("smaller_than_said", good, len(content) + 1)
    yield case("no_content_size", zstandard.ZstdCompressor(write_content_size=False).compress(content), len(content))
    yield case("no_frame", content[:64], 64)
    yield case("nothing", b"", 16)


def write_pushes(path: Path) -> None:
    """Write the cases."""
    path.write_text(json.dumps(push_cases(), indent=1) + "\n")


def push_differences(path: Path) -> Iterator[str]:
    """How written cases differ from the present ones. Frames are compared by content: releases of zstd differ."""
    written, present = json.loads(path.read_text()), push_cases()
    if written["segments"] != present["segments"]:
        yield "the segments differ"
    names = [[case[key] for key in ("name", "uncompressed_bytes", "segment")] for case in present["frames"]]
    if names != [[case[key] for key in ("name", "uncompressed_bytes", "segment")] for case in written["frames"]]:
        yield "the frames differ"
    for case in written["frames"]:
        try:
            content = packing.decompress(bytes.fromhex(case["frame"]), case["uncompressed_bytes"]).hex()
        except packing.CorruptPayload:
            content = None
        if content != case["segment"]:
            yield f"the frame '{case['name']}' has other content"

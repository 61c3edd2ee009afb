"""Sizes of messages in bytes: what clients and servers send, accept and agree on."""

from __future__ import annotations

MESSAGE_BYTES = 4 << 20
"""Largest message by default, in either direction; a server may set another limit, and clients send no larger ones."""
MIN_MESSAGE_BYTES = 64 << 10
"""The lowest limit that a server may set."""
TRANSPORT_BYTES = MESSAGE_BYTES + (64 << 10)
"""What gRPC accepts on the client: the largest message, and what surrounds it."""
MESSAGE_OVERHEAD = 8 << 10
"""Bytes of a push beyond the values of its segments: names, numbers, and the slack of packing."""
REQUEST_BYTES = 1 << 18
"""Requests without experience or observations."""
JOIN_REPLY_BYTES = 512 << 10
"""A reply to Join. An empty part of a policy takes two bytes of it and seventy bytes in memory."""
FAILURE_BYTES = 4 << 10
"""The failure in the trailing metadata of a call."""
PATCH_CHUNK_BYTES = 1 << 20
"""Payload of one chunk of a patch: it fits every message limit, and lets other calls in between."""
INLINE_PATCH_BYTES = 1 << 20
"""The largest patch that Watch may send together with the news of a version; larger ones are pulled."""
FILE_CHUNK_BYTES = 128 << 10
"""Bytes of a file in one message, in either direction."""
MAX_INSTALLED_BYTES = 512 << 20
"""The largest file that a learner may be asked to continue from."""
REQUEST_FIELDS = 1 << 12
"""Fields at the top level of a request, unless more segments are allowed."""
REPLY_FIELDS = 1 << 16
"""Fields at the top level of a reply."""
SEGMENT_STEPS = 1 << 16
"""Steps of one segment, by default."""

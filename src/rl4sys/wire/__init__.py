"""The wire contract of `proto/rl4sys/v1`: records to messages, and messages to validated records."""

from rl4sys.wire.decisions import Question, decode_decision, decode_question, encode_decision, encode_question
from rl4sys.wire.errors import ContractViolation, RefusalReason, SegmentRefused
from rl4sys.wire.failures import FAILURE_METADATA, Failure, FailureReason
from rl4sys.wire.messages import parse
from rl4sys.wire.names import require_name
from rl4sys.wire.patches import decode_patch, encode_patch
from rl4sys.wire.policies import decode_action, decode_policy, encode_action, encode_policy
from rl4sys.wire.policy_check import require_decides
from rl4sys.wire.segment_format import SegmentFormat, choices_of
from rl4sys.wire.segment_packs import decode_checked_pack, decode_pack, encode_pack, packed_steps, split_pack
from rl4sys.wire.segments import decode_checked_segment, decode_segment, encode_segment
from rl4sys.wire.sequence_ranges import covered, to_ranges

PROTOCOL = 1
"""The protocol version that this package speaks."""

__all__ = [
    "FAILURE_METADATA",
    "PROTOCOL",
    "ContractViolation",
    "Failure",
    "FailureReason",
    "Question",
    "RefusalReason",
    "SegmentFormat",
    "SegmentRefused",
    "choices_of",
    "covered",
    "decode_action",
    "decode_checked_pack",
    "decode_checked_segment",
    "decode_decision",
    "decode_pack",
    "decode_patch",
    "decode_policy",
    "decode_question",
    "decode_segment",
    "encode_action",
    "encode_decision",
    "encode_pack",
    "encode_patch",
    "encode_policy",
    "encode_question",
    "encode_segment",
    "packed_steps",
    "parse",
    "require_decides",
    "require_name",
    "split_pack",
    "to_ranges",
]

import pytest

from rl4sys.wire import FAILURE_METADATA, Failure, FailureReason, RefusalReason
from rl4sys.wire.generated import training_pb2


def test_a_failure_is_found_among_other_metadata() -> None:
    failure = Failure(FailureReason.INBOX_FULL, retry_after_ms=250)
    assert Failure.from_metadata([("content-type", "application/grpc"), failure.to_metadata()]) == failure


@pytest.mark.parametrize(
    "metadata",
    [[], [("other-bin", b"\x08\x06")], [(FAILURE_METADATA, b"\xff")], [(FAILURE_METADATA, bytes(5000))]],
    ids=["none", "another", "garbage", "endless"],
)
def test_unreadable_metadata_is_an_unspecified_failure(metadata: list[tuple[str, bytes]]) -> None:
    assert Failure.from_metadata(metadata) == Failure()


def test_an_unknown_reason_keeps_its_delay() -> None:
    later = training_pb2.Failure(retry_after_ms=40)
    data = later.SerializeToString() + b"\x08\xe7\x07"
    assert Failure.from_metadata([(FAILURE_METADATA, data)]) == Failure(FailureReason.UNSPECIFIED, 40)


def test_reasons_have_the_names_and_numbers_of_the_proto() -> None:
    failures = {f"FAILURE_REASON_{reason.name}": reason.value for reason in FailureReason}
    refusals = {f"REFUSAL_REASON_{reason.name}": reason.value for reason in RefusalReason}
    assert dict(training_pb2.FailureReason.items()) == failures
    assert dict(training_pb2.RefusalReason.items()) == refusals | {"REFUSAL_REASON_UNSPECIFIED": 0}

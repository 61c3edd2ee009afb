from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.server.clients import ScriptedClient, join_request

from rl4sys.server import ANYONE, Caller, ImpossibleSetup, InProcessTransport, Role, ServiceOptions, TrainingService
from rl4sys.server.access.tokens import TokenFile
from rl4sys.server.options import Rates
from rl4sys.wire.calls import CallFailed, Code
from rl4sys.wire.generated import status_pb2, training_pb2
from rl4sys.wire.token_hash import hashed_token, new_token, stored_digest, token_digest

TOKEN = "a" * 20


def caller(tmp_path: Path, line: str) -> Caller:
    (tmp_path / "tokens").write_text(f"# ours\n\n  {TOKEN} {line}\n")
    return TokenFile(tmp_path / "tokens").authenticate([("authorization", f"Bearer {TOKEN}")], "peer")


def test_a_line_grants_clients_policies_and_rates(tmp_path: Path) -> None:
    line = "expires=2999-01-01 lander-* policies=fleet,lander-* rover bytes_per_second=1e6 steps_per_second=50"
    found = caller(tmp_path, line)
    assert (found.patterns, found.policies) == (("lander-*", "rover"), ("fleet", "lander-*"))
    assert found.rates == Rates(bytes_per_second=1e6, steps_per_second=50)
    assert found.peer == "peer"
    assert found.token
    assert found.token not in TOKEN


def test_a_comment_after_a_line_grants_nothing(tmp_path: Path) -> None:
    found = caller(tmp_path, "lander-* # and rover, policies=fleet, soon")
    assert (found.patterns, found.policies) == (("lander-*",), None)


@pytest.mark.parametrize(
    ("line", "policy_id", "may"),
    [
        ("lander-*", "", True),
        ("lander-*", "lander-all", True),
        ("lander-*", "fleet", False),
        ("*", "fleet", True),
        ("lander-1", "lander-1", True),
        ("lander-1", "lander-2", False),
        ("lander-* policies=fleet", "fleet", True),
        ("lander-* policies=fleet", "lander-all", False),
        ("lander-* policies=fleet,lander-*", "lander-all", True),
        ("lander-* policies=f?eet", "fleet", True),
        ("lander-* policies=", "fleet", False),
        ("lander-* policies=", "", True),
    ],
)
def test_a_token_may_join_the_policies_that_it_names_or_that_its_clients_match(
    line: str, policy_id: str, may: bool, tmp_path: Path
) -> None:
    assert caller(tmp_path, line).may_join(policy_id) is may


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("", "the client ids that it may use"),
        ("policies=fleet", "the client ids that it may use"),
        ("a polices=fleet", r"unknown option 'polices='; did you mean 'policies'"),
        ("a expires=soon", "Write expires=2027-01-31"),
        ("a bytes_per_second=much", r"bytes_per_second: got 'much'; expected a number"),
        ("a steps_per_second=-1", "more than 0"),
        ("a role=oprator", "unknown role 'oprator'; did you mean 'operator'"),
    ],
)
def test_an_invalid_line_is_named(line: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ImpossibleSetup, match=problem) as failed:
        caller(tmp_path, line)
    assert "tokens, line 3" in str(failed.value)
    assert TOKEN not in str(failed.value)


def test_a_line_that_becomes_invalid_grants_nothing_and_keeps_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"{TOKEN} a\n{'b' * 20} b\n")
    tokens = TokenFile(path)
    path.write_text(f"{TOKEN} a polices=x\n{'b' * 20} b\n")
    with caplog.at_level(logging.ERROR), pytest.raises(CallFailed) as failed:
        tokens.authenticate([("authorization", f"Bearer {TOKEN}")], "")
    assert failed.value.code is Code.UNAUTHENTICATED
    assert tokens.authenticate([("authorization", f"Bearer {'b' * 20}")], "").may_use("b")
    assert "line 1" in caplog.text
    assert TOKEN not in caplog.text


def test_a_policy_is_closed_to_every_call_of_a_token_that_may_not_join_it(tmp_path: Path) -> None:
    with TrainingService(tmp_path, ServiceOptions("threads")) as service:
        owner = InProcessTransport(service, Caller(("a",), policies=("fleet",), token="1"))
        stranger = InProcessTransport(service, Caller(("a",), token="2"))
        session = ScriptedClient(owner, join_request("a", policy_id="fleet")).joined.session
        calls = {
            "Join": lambda: stranger.join(join_request("a", None, policy_id="fleet"), 5.0),
            "Push": lambda: stranger.push(training_pb2.PushRequest(session=session), 5.0),
            "Pull": lambda: list(stranger.pull(training_pb2.PullRequest(session=session), 5.0)),
            "Watch": lambda: stranger.watch(training_pb2.WatchRequest(session=session)),
            "Act": lambda: stranger.act(training_pb2.ActRequest(session=session), 5.0),
            "Report": lambda: stranger.report(training_pb2.ReportRequest(session=session), 5.0),
        }
        for name, call in calls.items():
            with pytest.raises(CallFailed, match="This token may not") as failed:
                call()
            assert failed.value.code is Code.PERMISSION_DENIED, name
        assert stranger.join(join_request("a"), 10.0).learner == "a"


@pytest.mark.parametrize(
    ("line", "role", "patterns"),
    [
        ("a", Role.CLIENT, ("a",)),
        ("role=client a", Role.CLIENT, ("a",)),
        ("role=viewer", Role.VIEWER, ("*",)),
        ("role=viewer lander-*", Role.VIEWER, ("lander-*",)),
        ("role=operator name=alice", Role.OPERATOR, ("*",)),
    ],
)
def test_a_line_has_a_role_and_only_clients_must_name_client_ids(
    line: str, role: Role, patterns: tuple[str, ...], tmp_path: Path
) -> None:
    found = caller(tmp_path, line)
    assert (found.role, found.patterns) == (role, patterns)
    assert found.who == ("alice" if "alice" in line else found.token)


def test_a_file_with_hashes_admits_the_tokens_and_not_the_hashes(tmp_path: Path) -> None:
    path, token = tmp_path / "tokens", new_token()
    path.write_text(f"{hashed_token(token)} role=operator\n{hashed_token(TOKEN).upper().replace('SHA', 'sha')} a\n")
    tokens = TokenFile(path)
    assert tokens.authenticate([("authorization", f"Bearer {token}")], "").role is Role.OPERATOR
    assert tokens.authenticate([("authorization", f"Bearer {TOKEN}")], "").patterns == ("a",)
    with pytest.raises(CallFailed) as failed:
        tokens.authenticate([("authorization", f"Bearer {hashed_token(token)}")], "")
    assert failed.value.code is Code.UNAUTHENTICATED


def test_a_malformed_hash_is_named_without_being_shown(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"sha256:{'z' * 64} a\n")
    with pytest.raises(
        ImpossibleSetup, match=r"tokens, line 1: sha256: is followed by 64 characters; expected"
    ) as failed:
        TokenFile(tmp_path / "tokens")
    assert "zzz" not in str(failed.value)
    assert stored_digest(hashed_token(TOKEN)) == stored_digest(TOKEN) == token_digest(TOKEN)


def test_each_role_may_do_what_it_is_for(tmp_path: Path) -> None:
    roles: dict[str, list[str]] = {}
    with TrainingService(tmp_path, ServiceOptions("threads")) as service:
        session = ScriptedClient(InProcessTransport(service), join_request("a")).joined.session
        for role in Role:
            transport = InProcessTransport(service, Caller(role=role, token="t"))
            calls = {
                "Join": lambda to=transport: to.join(join_request("a"), 5.0),
                "Push": lambda to=transport: to.push(training_pb2.PushRequest(session=session), 5.0),
                "Pull": lambda to=transport: list(to.pull(training_pb2.PullRequest(session=session), 5.0)),
                "Watch": lambda to=transport: to.watch(training_pb2.WatchRequest(session=session)).cancel(),
                "Act": lambda to=transport: to.act(training_pb2.ActRequest(session=session), 5.0),
                "Status": lambda to=transport: to.status(status_pb2.StatusRequest(), 5.0),
            }
            roles[role] = [name for name, call in calls.items() if not _is_denied(call)]
            with pytest.raises(CallFailed) if role is Role.VIEWER else nullcontext():
                service.require_watching(training_pb2.WatchRequest(session=session), Caller(role=role))
        assert service.calls["Push", "PERMISSION_DENIED"] == 1
    everything = ["Join", "Push", "Pull", "Watch", "Act", "Status"]
    assert roles == {"viewer": ["Status"], "client": everything, "operator": everything}


def _is_denied(call: Callable[[], object]) -> bool:
    try:
        call()
    except CallFailed as error:
        return error.code is Code.PERMISSION_DENIED
    return False


def test_what_needs_an_operator_says_how_to_become_one() -> None:
    ANYONE.require_role(Role.OPERATOR, "Pause")
    with pytest.raises(
        CallFailed, match=r"Pause needs the role operator; this token has the role client.*role=operator"
    ):
        Caller(token="t").require_role(Role.OPERATOR, "Pause")
    with pytest.raises(CallFailed, match="Call from the server's machine"):
        Caller(peer="ipv4:10.0.0.7:4711").require_role(Role.OPERATOR, "Pause")

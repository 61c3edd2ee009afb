"""The page is served to this machine only, unless TLS and a token protect it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rl4sys.ui.page_address import PageAddress, UnsafeAddress


@pytest.mark.parametrize("listen", ["0.0.0.0:8265", "192.0.2.1:8265", "[::]:8265", "lab.example.com:8265"])
def test_another_machine_needs_tls_and_a_token(listen: str) -> None:
    with pytest.raises(
        UnsafeAddress, match=r"needs TLS and a token\. Give --page-cert and --page-key and --page-token"
    ):
        PageAddress(listen)


def test_tls_alone_is_not_enough(tmp_path: Path) -> None:
    with pytest.raises(UnsafeAddress, match="Give --page-token-file as well"):
        PageAddress("0.0.0.0:8265", tmp_path / "cert", tmp_path / "key")


@pytest.mark.parametrize("listen", ["8265", "127.0.0.1:", "127.0.0.1:99999", "unix:/tmp/socket"])
def test_an_address_that_is_none_is_refused(listen: str) -> None:
    with pytest.raises(UnsafeAddress, match=r"expected HOST:PORT"):
        PageAddress(listen)


def test_a_taken_port_is_one_sentence() -> None:
    with PageAddress("127.0.0.1:0").bind() as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UnsafeAddress, match=f"Cannot listen on 127.0.0.1:{port}: Address already in use"):
            PageAddress(f"127.0.0.1:{port}").bind()


def test_names_of_this_machine_are_known_and_others_are_not(tmp_path: Path) -> None:
    assert PageAddress().authorities(80) == {
        *("127.0.0.1:80", "localhost:80", "[::1]:80"),
        *("127.0.0.1", "localhost", "[::1]"),
    }
    files = (tmp_path / "cert", tmp_path / "key", tmp_path / "tokens")
    known = PageAddress("192.0.2.1:8265", *files, names=("Lab.example.com",)).authorities(8265)
    assert {"192.0.2.1:8265", "lab.example.com:8265"} <= known


def test_a_certificate_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    for name in ("cert", "key"):
        (tmp_path / name).write_text("nonsense")
    with pytest.raises(UnsafeAddress, match="are not a certificate and its key"):
        PageAddress(certificate=tmp_path / "cert", key=tmp_path / "key").require_certificate()


def test_a_token_file_has_a_token_in_each_line(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    address = PageAddress(token_file=path)
    with pytest.raises(UnsafeAddress, match="No such file"):
        address.tokens()
    path.write_text("# for people\n\n")
    with pytest.raises(UnsafeAddress, match="has no token"):
        address.tokens()
    path.write_text("# for people\nfirst-token\n second-token \n")
    assert address.tokens() == ("first-token", "second-token")

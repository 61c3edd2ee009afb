"""The end of a certificate, and the warning before it."""

from __future__ import annotations

import ssl
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.pem_files import make_certificate, needs_openssl

from rl4sys.server.server_warnings import ServerWarnings
from rl4sys.server.transport.certificate_expiry import expiry_of
from rl4sys.server.transport.certificates import Certificates


@needs_openssl
@pytest.mark.parametrize("days", [1, 300, 20_000])
def test_the_date_of_a_certificate_is_that_which_openssl_wrote(tmp_path: Path, days: int) -> None:
    cert, _ = make_certificate(tmp_path, "it", days)
    left = expiry_of(cert.read_bytes()) - datetime.now(UTC)
    assert left.total_seconds() == pytest.approx(days * 86_400, abs=60)


@pytest.mark.parametrize("pem", [b"", b"\xff", ssl.DER_cert_to_PEM_cert(b"\x30\x82").encode()])
def test_what_is_no_certificate_is_refused(pem: bytes) -> None:
    with pytest.raises(ValueError, match="certificate"):
        expiry_of(pem)


@needs_openssl
def test_a_certificate_that_expires_soon_is_a_warning_until_it_is_replaced(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "it", 13)
    warnings = ServerWarnings()
    certificates = Certificates(cert, key, None, warnings)
    (text,) = warnings.all()
    assert "expires on" in text
    for old, new in zip((cert, key), make_certificate(tmp_path, "new"), strict=True):
        new.rename(old)
    certificates.reload()
    assert warnings.all() == []


@needs_openssl
def test_a_certificate_that_has_expired_says_so(tmp_path: Path) -> None:
    cert, key = make_certificate(tmp_path, "it", 20)
    warnings = ServerWarnings()
    Certificates(cert, key, None, warnings, wall_clock=lambda: time.time() + 21 * 86_400)
    assert "expired on" in warnings.all()[0]

"""Until when a certificate is valid: its DER is read as far as that date, since Python's ssl has no function for it."""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime

_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17


def expiry_of(pem: bytes) -> datetime:
    """The date in the first certificate of a PEM file. Raises `ValueError` for what is no certificate."""
    found = _PEM.search(pem.decode("ascii", "replace"))
    if found is None:
        raise ValueError("there is no certificate in it")
    try:
        return _not_after(ssl.PEM_cert_to_DER_cert(found[0]))
    except IndexError as error:
        raise ValueError("its certificate ends too early") from error


def _not_after(der: bytes) -> datetime:
    # RFC 5280, 4.1: Certificate { tbsCertificate { [0] version, serial, signature, issuer, validity, … }, … }
    _, certificate, _ = _element(der)
    _, rest, _ = _element(certificate)
    if rest[0] == _VERSION:
        _, _, rest = _element(rest)
    for _ in range(3):
        _, _, rest = _element(rest)
    _, validity, _ = _element(rest)
    _, _, rest = _element(validity)
    tag, text, _ = _element(rest)
    digits = text.decode("ascii").removesuffix("Z")
    if tag == _UTC_TIME:
        digits = ("19" if digits[:2] >= "50" else "20") + digits
    return datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)


def _element(der: bytes) -> tuple[int, bytes, bytes]:
    """The tag and the content of the first element, and what follows it."""
    length, start = der[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(der[2:start], "big")
    return der[0], der[start : start + length], der[start + length :]

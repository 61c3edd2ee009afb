"""Tokens and their hashes, which a token file may have in their place."""

from __future__ import annotations

import hashlib
import re
import secrets

HASHED = "sha256:"
"""How the hash of a token starts in a token file."""
_DIGEST = re.compile(r"[0-9a-fA-F]{64}")


def new_token() -> str:
    """A random token of 43 characters."""
    return secrets.token_urlsafe(32)


def token_digest(token: str) -> bytes:
    """The SHA-256 of a token, which identifies it without revealing it."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).digest()


def hashed_token(token: str) -> str:
    """A token as a token file may have it: `sha256:` and 64 hexadecimal digits."""
    return HASHED + token_digest(token).hex()


def stored_digest(word: str) -> bytes:
    """The digest of the first word of a line, a token or its hash. Raises `ValueError` for a malformed hash."""
    if not word.startswith(HASHED):
        return token_digest(word)
    digits = word.removeprefix(HASHED)
    if _DIGEST.fullmatch(digits) is None:
        raise ValueError(
            f"{HASHED} is followed by {len(digits)} characters; expected 64 hexadecimal digits, such as "
            f"`rl4sys token hash` prints"
        )
    return bytes.fromhex(digits)

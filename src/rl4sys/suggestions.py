"""Suggestions for misspelt words, such as "did you mean 'ppo'?"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_SIMILAR = 0.65
"""How much two words must share, of 1: with less, `verbose` would be taken for `videos`."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'ppo'?`, or nothing when no known word is similar."""
    near = nearest(word, known)
    return f"; did you mean '{near}'?" if near else ""


def did_you_mean_one_of(word: str, known: Iterable[str]) -> str:
    """`Did you mean runs/a or runs/b?`: up to three similar names, or nothing."""
    close = _similar(word, known, most=3, cutoff=0.5)
    return f"Did you mean {' or '.join(close)}?" if close else ""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was most probably meant, ignoring case: a similar one, or one with the same initials."""
    names = list(known)
    matches = _similar(word, names, most=1, cutoff=_SIMILAR)
    return matches[0] if matches else next((name for name in names if _abbreviates(word, name)), None)


def _abbreviates(one: str, other: str) -> bool:
    """Whether one word is made of the initials of the other, as `lr` of `learning_rate`."""
    short, long = sorted((one.casefold(), other.casefold()), key=len)
    return "_" in long and short == "".join(part[:1] for part in long.split("_"))


def _similar(word: str, known: Iterable[str], *, most: int, cutoff: float) -> list[str]:
    folded = {name.casefold(): name for name in known}
    return [folded[match] for match in difflib.get_close_matches(word.casefold(), folded, n=most, cutoff=cutoff)]

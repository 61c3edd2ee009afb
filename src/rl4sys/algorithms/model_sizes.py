"""Sizes of world models by name; `xs` to `l` are those of the first edition of DreamerV3 (arXiv:2301.04104v1)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from rl4sys.dynamics import ModelSize

SizeName: TypeAlias = Literal["pico", "nano", "1m", "xs", "s", "m", "l"]

SIZES: dict[SizeName, ModelSize] = {
    "pico": ModelSize(deter=128, hidden=64, groups=8, classes=8, units=64, layers=1, depth=4, lr=1e-3),
    "nano": ModelSize(deter=256, hidden=128, groups=16, classes=8, units=128, layers=2, depth=8, lr=6e-4),
    "1m": ModelSize(deter=512, hidden=64, groups=32, classes=4, units=64, layers=3, depth=4, lr=4e-4),
    "xs": ModelSize(deter=256, hidden=256, groups=32, classes=32, units=256, layers=1, depth=24, lr=1e-4),
    "s": ModelSize(deter=512, hidden=512, groups=32, classes=32, units=512, layers=2, depth=32, lr=1e-4),
    "m": ModelSize(deter=1024, hidden=640, groups=32, classes=32, units=640, layers=3, depth=48, lr=4e-5),
    "l": ModelSize(deter=2048, hidden=768, groups=32, classes=32, units=768, layers=4, depth=64, lr=4e-5),
}

"""Flat layouts, versions, and the patches between them."""

from rl4sys.weights.layout import Flat, Layout, LayoutMismatch
from rl4sys.weights.model_store import ModelStore
from rl4sys.weights.patches import Encoding, Patch, PatchMismatch, apply_patch, make_patch
from rl4sys.weights.versions import Version, VersionGone

__all__ = [
    "Encoding",
    "Flat",
    "Layout",
    "LayoutMismatch",
    "ModelStore",
    "Patch",
    "PatchMismatch",
    "Version",
    "VersionGone",
    "apply_patch",
    "make_patch",
]
